#include "tests/process/relay.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "tests/support/loopback.h"

namespace disttf::test_process {
namespace {

using test_support::loopback;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int listen_beside_reserved(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address = loopback(port);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd, std::bit_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, SOMAXCONN) != 0) {
    fail("a relay cannot listen");
  }
  return fd;
}

// Returns false if either side, or the end of the relay, has closed it.
bool read_all(int fd, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
    if (got <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

void read_until_hangup(int fd) {
  std::array<std::byte, 4096> dropped{};
  while (recv(fd, dropped.data(), dropped.size(), 0) > 0) {
  }
}

}  // namespace

std::size_t whole(const net::FrameHeader& header) { return net::kHeaderBytes + header.body_size; }

Relay::Relay(const ClusterOnLoopback& cluster, std::size_t index, Rule rule, Pace pace)
    : rule_(std::move(rule)),
      pace_(std::move(pace)),
      inherited_(dup(ps_port_.socket())),  // dup() clears close-on-exec
      listener_(listen_beside_reserved(cluster.tasks().ps[index].port)) {
  if (listen(ps_port_.socket(), SOMAXCONN) != 0) {
    fail("cannot listen for a ps");
  }
  acceptor_ = std::thread([this] { accept_connections(); });
}

Relay::~Relay() {
  // Wakes accept4(); closing the descriptor would not.
  shutdown(listener_.number(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) {
      shutdown(socket, SHUT_RDWR);
    }
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

std::string Relay::listen_flag() const {
  return "--listen_fd=" + std::to_string(inherited_.number());
}

void Relay::accept_connections() {
  while (true) {
    const int task = accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC);
    if (task < 0) {
      return;
    }
    const std::lock_guard lock(mutex_);
    sockets_.insert(task);
    threads_.emplace_back([this, task] { serve(task); });
  }
}

void Relay::serve(int task) {
  const int ps = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  {
    const std::lock_guard lock(mutex_);
    // Registered before connect(), so that the destructor can interrupt a connection in progress.
    sockets_.insert(ps);
  }
  const int on = 1;
  // A delayed small frame would change the timing that the test observes.
  setsockopt(task, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(ps, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address = loopback(ps_port_.number());
  net::Hello hello;
  if (connect(ps, std::bit_cast<sockaddr*>(&address), sizeof address) == 0 &&
      pass_hello(task, ps, hello)) {
    std::thread back([&] {
      pass_frames(ps, task, hello, /*to_ps=*/false);
      shutdown(task, SHUT_RDWR);
    });
    pass_frames(task, ps, hello, /*to_ps=*/true);
    shutdown(ps, SHUT_RDWR);
    back.join();
  }
  const std::lock_guard lock(mutex_);
  for (const int socket : {task, ps}) {
    sockets_.erase(socket);
    close(socket);
  }
}

bool Relay::pass_hello(int task, int ps, net::Hello& hello) const {
  std::array<std::byte, net::kHeaderBytes + net::kBodyBytes<net::Hello>> bytes{};
  return read_all(task, bytes) &&
         !net::decode(std::span(bytes).subspan(net::kHeaderBytes), hello) && write_all(ps, bytes);
}

void Relay::pass_frames(int from, int to, const net::Hello& hello, bool to_ps) const {
  std::array<std::byte, net::kHeaderBytes> head{};
  std::array<std::byte, 65536> piece{};
  net::FrameHeader header;
  while (read_all(from, head) && !net::decode_header(head, header)) {
    const std::size_t all = whole(header);
    const Passing frame{.hello = hello, .to_ps = to_ps, .header = header};
    const std::size_t passing = std::min(all, rule_(frame));
    const double pace = pace_ ? pace_(frame) : 0;
    const auto began = std::chrono::steady_clock::now();
    // A rule may cut a frame within its header.
    if (!write_all(to, std::span(head).first(std::min(passing, head.size())))) {
      return;
    }
    for (std::size_t done = head.size(); done < passing;) {
      const auto next = std::span(piece).first(std::min(piece.size(), passing - done));
      if (!read_all(from, next) || !write_all(to, next)) {
        return;
      }
      done += next.size();
      if (pace > 0) {
        std::this_thread::sleep_until(
            began + std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::duration<double>(static_cast<double>(done) / pace)));
      }
    }
    // The rule holds the rest back: keep reading so that the sender does not notice a full socket.
    if (passing < all) {
      read_until_hangup(from);
      return;
    }
  }
}

}  // namespace disttf::test_process
