#include "tests/support/mirror_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <memory>
#include <system_error>
#include <utility>

#include "tests/support/loopback.h"

namespace disttf::test_support {
namespace {

constexpr std::size_t kMaxRequestBytes = 64 * 1024;

sockaddr* generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

// OpenSSL writes to the socket without MSG_NOSIGNAL.
void ignore_broken_pipes_in_this_thread() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

MirrorRequest parse_request(std::string_view text) {
  const auto next_line = [&text] {
    const std::string_view line = text.substr(0, text.find("\r\n"));
    text.remove_prefix(std::min(text.size(), line.size() + 2));
    return line;
  };
  MirrorRequest request;
  const std::string_view first = next_line();
  const std::size_t method_end = first.find(' ');
  request.method = first.substr(0, method_end);
  request.target = first.substr(method_end + 1, first.rfind(' ') - method_end - 1);
  for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
    const std::size_t colon = std::min(line.find(": "), line.size() - 1);
    request.headers[lower(line.substr(0, colon))] = line.substr(std::min(colon + 2, line.size()));
  }
  return request;
}

// The header for `contents` from the requested offset, and that offset.
struct Answer {
  std::string head;
  std::size_t begin = 0;
};

Answer head_for(const MirrorRequest& request, const std::string& contents, bool ranges) {
  const std::size_t size = contents.size();
  const std::size_t begin = ranges ? request.range_begin().value_or(0) : 0;
  const std::string total = std::to_string(size);
  // A client that has the complete file asks for the range behind its end.
  if (begin > 0 && begin >= size) {
    return {"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */" + total +
                "\r\nContent-Length: 0\r\n\r\n",
            size};
  }
  std::string head = begin > 0 ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " +
                                     std::to_string(begin) + "-" + std::to_string(size - 1) + "/" +
                                     total + "\r\n"
                               : "HTTP/1.1 200 OK\r\n";
  if (ranges) head += "Accept-Ranges: bytes\r\n";
  head += "Content-Length: " + std::to_string(size - begin) + "\r\n\r\n";
  return {std::move(head), begin};
}

// Sends at most `limit` bytes of the body. Returns false if the file does not exist.
bool serve_file(const Files& files, const MirrorRequest& request,
                const MirrorConnection& connection, bool ranges, std::size_t limit) {
  const auto file = files.find(request.target);
  if (file == files.end()) {
    connection.respond("404 Not Found", "no such file\n");
    return false;
  }
  const Answer answer = head_for(request, file->second, ranges);
  connection.send(answer.head);
  connection.send(std::string_view(file->second).substr(answer.begin, limit));
  return true;
}

}  // namespace

std::string MirrorRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::optional<std::size_t> MirrorRequest::range_begin() const {
  static constexpr std::string_view kPrefix = "bytes=";
  const std::string range = header("range");
  if (!range.starts_with(kPrefix) || !range.ends_with('-')) return std::nullopt;
  std::size_t begin = 0;
  std::from_chars(range.data() + kPrefix.size(), range.data() + range.size() - 1, begin);
  return begin;
}

bool MirrorConnection::send(std::string_view text) const {
  if (text.empty()) return true;
  if (tls_ == nullptr) return send_all(socket_, text);
  std::size_t written = 0;
  return SSL_write_ex(tls_, text.data(), text.size(), &written) == 1;
}

bool MirrorConnection::respond(std::string_view status, std::string_view body,
                               std::string_view headers) const {
  std::string text = "HTTP/1.1 ";
  text.append(status).append("\r\nContent-Length: ").append(std::to_string(body.size()));
  return send(text.append("\r\n").append(headers).append("\r\n").append(body));
}

std::ptrdiff_t MirrorConnection::read_some(char* data, std::size_t size) const {
  if (tls_ == nullptr) return recv(socket_, data, size, 0);
  return SSL_read(tls_, data, static_cast<int>(size));
}

std::string MirrorConnection::read_head() const {
  std::string text;
  while (!text.ends_with("\r\n\r\n") && text.size() < kMaxRequestBytes) {
    char c = 0;
    // Reads byte by byte, so that no byte of a body or of a tunnel is consumed.
    if (read_some(&c, 1) <= 0) return {};
    text += c;
  }
  return text;
}

std::string MirrorConnection::read_body(std::size_t bytes) const {
  std::string text;
  while (text.size() < std::min(bytes, kMaxRequestBytes)) {
    char c = 0;
    if (read_some(&c, 1) <= 0) break;
    text += c;
  }
  return text;
}

void MirrorConnection::wait_for_hangup() const {
  std::array<char, 256> ignored{};
  while (read_some(ignored.data(), ignored.size()) > 0) {
  }
}

bool MirrorConnection::hangs_up_within(std::chrono::milliseconds time) const {
  pollfd end{socket_, POLLRDHUP, 0};
  return poll(&end, 1, static_cast<int>(time.count())) != 0;
}

void MirrorConnection::relay_to(std::uint16_t port) const {
  const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(port);
  if (connect(other, generic(address), sizeof address) == 0) {
    std::array<pollfd, 2> ends{pollfd{socket_, POLLIN, 0}, pollfd{other, POLLIN, 0}};
    std::array<char, 16384> data{};
    bool open = true;
    while (open && poll(ends.data(), ends.size(), -1) > 0) {
      for (std::size_t i = 0; i < ends.size() && open; ++i) {
        if (ends[i].revents == 0) continue;
        const ssize_t got = recv(ends[i].fd, data.data(), data.size(), 0);
        open = got > 0 && send_all(ends[1 - i].fd, {data.data(), static_cast<std::size_t>(got)});
      }
    }
  }
  close(other);
}

MirrorServer::MirrorServer(Handler handler, OpenSsl<SSL_CTX> tls, Start start)
    : handler_(std::move(handler)), tls_(std::move(tls)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (listener_ < 0 || bind(listener_, generic(address), size) != 0 ||
      listen(listener_, SOMAXCONN) != 0 || getsockname(listener_, generic(address), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "the test mirror cannot listen");
  }
  port_ = ntohs(address.sin_port);
  if (start == Start::kNow) this->start();
}

void MirrorServer::start() {
  acceptor_ = std::thread([this] { accept_connections(); });
}

MirrorServer::~MirrorServer() {
  shutdown(listener_, SHUT_RDWR);  // wakes accept()
  if (acceptor_.joinable()) acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  close(listener_);
}

std::string MirrorServer::url(const std::string& path, const std::string& host) const {
  return (tls_ ? "https://" : "http://") + host + ":" + std::to_string(port_) + path;
}

std::vector<MirrorRequest> MirrorServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

bool MirrorServer::wait_for_request() const {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, std::chrono::seconds(30), [this] { return !requests_.empty(); });
}

void MirrorServer::accept_connections() {
  for (;;) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    {
      const std::lock_guard lock(mutex_);
      sockets_.insert(socket);
    }
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void MirrorServer::serve(int socket) {
  ignore_broken_pipes_in_this_thread();
  if (tls_) {
    const OpenSsl<SSL> tls(SSL_new(tls_.get()));
    SSL_set_fd(tls.get(), socket);
    if (SSL_accept(tls.get()) == 1) {
      answer(MirrorConnection(socket, tls.get()));
      // Without close_notify the client could not tell the end from a broken connection.
      SSL_shutdown(tls.get());
    }
  } else {
    answer(MirrorConnection(socket, nullptr));
  }
  const std::lock_guard lock(mutex_);
  sockets_.erase(socket);
  close(socket);
}

void MirrorServer::answer(const MirrorConnection& connection) {
  const std::string text = connection.read_head();
  if (text.empty()) return;
  const MirrorRequest request = parse_request(text);
  {
    const std::lock_guard lock(mutex_);
    // Recorded before the handler runs, because a handler may block until the test goes on.
    requests_.push_back(request);
    arrived_.notify_all();
  }
  handler_(request, connection);
}

Handler serve(Files files) {
  return [files = std::move(files)](const auto& request, const auto& connection) {
    serve_file(files, request, connection, true, std::string::npos);
  };
}

Handler serve_without_ranges(Files files) {
  return [files = std::move(files)](const auto& request, const auto& connection) {
    serve_file(files, request, connection, false, std::string::npos);
  };
}

Handler serve_page() {
  return [](const auto&, const auto& connection) {
    connection.respond("200 OK", "<!DOCTYPE html><html><body>Please log in</body></html>\n",
                       "Content-Type: text/html\r\n");
  };
}

Handler answer_not_found() {
  return [](const auto&, const auto& connection) {
    connection.respond("404 Not Found", "no such file\n");
  };
}

Handler stall_after(Files files, std::size_t bytes) {
  return [files = std::move(files), bytes](const auto& request, const auto& connection) {
    if (serve_file(files, request, connection, true, bytes)) connection.wait_for_hangup();
  };
}

Handler break_after(Files files, std::size_t bytes, bool ranges) {
  return [files = std::move(files), bytes, ranges](const auto& request, const auto& connection) {
    serve_file(files, request, connection, ranges, bytes);
  };
}

Handler first_then(std::size_t count, const Handler& first, const Handler& later) {
  // Handlers are copied and called by several threads, but share one count.
  auto calls = std::make_shared<std::atomic<std::size_t>>(0);
  return [=](const auto& request, const auto& connection) {
    (calls->fetch_add(1) < count ? first : later)(request, connection);
  };
}

Handler redirect(const std::string& status, const std::string& location) {
  return [=](const auto&, const auto& connection) {
    connection.respond(status, "", "Location: " + location + "\r\n");
  };
}

Handler proxy(Handler plain) {
  return [plain = std::move(plain)](const auto& request, const auto& connection) {
    if (request.method != "CONNECT") return plain(request, connection);
    const std::string port = request.target.substr(request.target.rfind(':') + 1);
    connection.send("HTTP/1.1 200 Connection established\r\n\r\n");
    connection.relay_to(static_cast<std::uint16_t>(std::stoi(port)));
  };
}

}  // namespace disttf::test_support
