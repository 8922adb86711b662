#include "net/http/http_local.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "net/http/http_response.h"

namespace disttf::net {
namespace {

// A socket for one call; closed at its end.
class LocalSocket {
 public:
  LocalSocket() : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~LocalSocket() {
    if (fd_ >= 0) close(fd_);
  }
  LocalSocket(const LocalSocket&) = delete;
  LocalSocket& operator=(const LocalSocket&) = delete;

  std::error_code connect_to(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
      return std::make_error_code(std::errc::filename_too_long);
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    // The socket API takes every kind of address as one type.
    const auto* const any = reinterpret_cast<const sockaddr*>(&address);
    return fd_ < 0 || connect(fd_, any, sizeof(address)) != 0 ? last_error() : std::error_code{};
  }

  // Kernel timeouts suffice, because the socket blocks and serves a single call.
  void limit_read_time(std::chrono::seconds read_timeout) const {
    const timeval limit{.tv_sec = read_timeout.count(), .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  }

  [[nodiscard]] std::error_code write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (written < 0 && errno != EINTR) return last_error();
      if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  // 0 bytes: the end.
  [[nodiscard]] std::error_code read_some(std::span<std::byte> buffer, std::size_t& bytes) const {
    ssize_t got = -1;
    do {
      got = recv(fd_, buffer.data(), buffer.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return last_error();
    bytes = static_cast<std::size_t>(got);
    return {};
  }

 private:
  static std::error_code last_error() {
    // EAGAIN: the receive or send timeout has passed.
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::make_error_code(std::errc::timed_out);
    return {errno, std::generic_category()};
  }

  int fd_;
};

std::string text_of(const LocalHttpRequest& request) {
  return request.method + " " + request.target +
         " HTTP/1.1\r\nHost: disttf\r\nConnection: close\r\n"
         "Content-Type: application/json\r\nContent-Length: " +
         std::to_string(request.body.size()) + "\r\n\r\n" + request.body;
}

}  // namespace

std::error_code http_over_local(
    const LocalHttpRequest& request,
    const std::function<void(int status, std::string_view piece)>& on_body) {
  LocalSocket socket;
  if (const std::error_code error = socket.connect_to(request.socket)) return error;
  socket.limit_read_time(request.read_timeout);
  // A server that refuses a request may close before it has read all of it: its reply is read all
  // the same.
  const std::error_code write_error = socket.write_all(text_of(request));
  if (write_error && write_error != std::errc::broken_pipe) return write_error;
  HttpResponseParser parser(HttpResponseParser::Request::kGet);
  std::array<std::byte, 16384> buffer{};
  bool has_body = false;
  while (!parser.complete()) {
    std::size_t bytes = 0;
    if (const std::error_code error = socket.read_some(buffer, bytes)) return error;
    if (bytes == 0) {
      if (const std::error_code error = parser.finish()) return error;
      break;
    }
    std::vector<std::span<const std::byte>> pieces;
    if (const std::error_code error = parser.feed(std::span(buffer).first(bytes), pieces)) {
      return error;
    }
    for (const std::span<const std::byte> piece : pieces) {
      // The body is text; a byte is a char.
      const auto* const text = reinterpret_cast<const char*>(piece.data());
      on_body(parser.head().status, {text, piece.size()});
      has_body = true;
    }
  }
  if (!has_body) on_body(parser.head().status, {});
  return {};
}

std::error_code try_local(const std::string& socket) { return LocalSocket().connect_to(socket); }

}  // namespace disttf::net
