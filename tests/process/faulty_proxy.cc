#include "tests/process/faulty_proxy.h"

#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "net/wire/text.h"
#include "tests/support/loopback.h"

namespace disttf::test_process {
namespace {

using test_support::loopback;
using test_support::send_all;

struct Message {
  std::string head;  // including its empty line
  std::string body;
};

bool receive_more(int socket, std::string& bytes) {
  char piece[65536];
  const ssize_t got = recv(socket, piece, sizeof piece, 0);
  if (got > 0) bytes.append(piece, static_cast<std::size_t>(got));
  return got > 0;
}

std::size_t length_in(const std::string& head) {
  const std::string small = net::to_lower(head);
  const std::size_t at = small.find("\r\ncontent-length:");
  return at == std::string::npos ? 0 : std::stoull(small.substr(at + 17));
}

// Returns whether this is the end of a chunked body. (A body that contains a line with only "0"
// would be cut there; the responses here are JSON and XML.)
bool ends_chunks(std::string_view body) {
  return body == "0\r\n\r\n" || body.ends_with("\r\n0\r\n\r\n");
}

// Returns nullopt if the connection has ended.
std::optional<Message> receive(int socket, bool has_body) {
  std::string bytes;
  std::size_t end = 0;
  while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
    if (!receive_more(socket, bytes)) return std::nullopt;
  }
  Message message{.head = bytes.substr(0, end + 4), .body = bytes.substr(end + 4)};
  // A message has a length or is chunked: at most one of these loops reads.
  const std::size_t length = has_body ? length_in(message.head) : 0;
  while (message.body.size() < length) {
    if (!receive_more(socket, message.body)) return std::nullopt;
  }
  const bool is_in_chunks =
      has_body &&
      net::to_lower(message.head).find("\r\ntransfer-encoding: chunked") != std::string::npos;
  while (is_in_chunks && !ends_chunks(message.body)) {
    if (!receive_more(socket, message.body)) return std::nullopt;
  }
  return message;
}

}  // namespace

FaultyProxy::FaultyProxy(std::uint16_t server_port, Rule rule, FaultMeans means)
    : server_port_(server_port),
      rule_(std::move(rule)),
      means_(std::move(means)),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener_.number(), std::bit_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_.number(), SOMAXCONN) != 0 ||
      getsockname(listener_.number(), std::bit_cast<sockaddr*>(&address), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "a proxy cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_connections(); });
}

FaultyProxy::~FaultyProxy() {
  // Wakes accept4(); closing the descriptor would not.
  shutdown(listener_.number(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int each : sockets_) shutdown(each, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
}

void FaultyProxy::accept_connections() {
  while (true) {
    const int client = accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const std::lock_guard lock(mutex_);
    sockets_.insert(client);
    threads_.emplace_back([this, client] { serve(client); });
  }
}

void FaultyProxy::serve(int client) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  {
    const std::lock_guard lock(mutex_);
    sockets_.insert(server);
  }
  sockaddr_in address = loopback(server_port_);
  if (connect(server, std::bit_cast<sockaddr*>(&address), sizeof address) == 0) {
    while (pass_one(client, server)) {
    }
  }
  const std::lock_guard lock(mutex_);
  for (const int each : {client, server}) {
    sockets_.erase(each);
    close(each);
  }
}

bool FaultyProxy::pass_one(int client, int server) {
  const auto request = receive(client, true);
  if (!request) return false;
  const Fault fault = rule_(
      {.first_line = request->head.substr(0, request->head.find("\r\n")), .head = request->head});
  if (fault != Fault::kNone) ++faults_;
  if (fault == Fault::kError) {
    return send_all(client, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
  }
  if (fault == Fault::kAnswer) return send_all(client, means_.answer);
  const bool is_cut = fault == Fault::kCutRequest || fault == Fault::kDeath;
  const std::string_view body = request->body;
  const std::size_t passing = is_cut ? body.size() / 2 : body.size();
  if (!send_all(server, request->head) || !send_all(server, body.substr(0, passing))) return false;
  // The server must have half of the body when it dies.
  if (fault == Fault::kDeath) means_.kill();
  if (is_cut) return false;
  // The response to HEAD has a Content-Length but no body.
  const auto answer = receive(server, !request->head.starts_with("HEAD "));
  // The server has completed the request; only its response is late.
  if (fault == Fault::kLateAnswer) means_.wait();
  if (!answer || fault == Fault::kLostAnswer || !send_all(client, answer->head)) return false;
  if (fault == Fault::kCutAnswer) {
    send_all(client, std::string_view(answer->body).substr(0, answer->body.size() / 2));
    return false;
  }
  return send_all(client, answer->body);
}

}  // namespace disttf::test_process
