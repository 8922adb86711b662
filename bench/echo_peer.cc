#include "bench/echo_peer.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <exception>
#include <system_error>
#include <vector>

#include "roles/ps/shell/parameter_server.h"

namespace disttf::bench {
namespace {

// More than the number of simultaneous connections: a client that finds the backlog full waits a
// second.
constexpr int kBacklog = 128;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void set_no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Peer::~Peer() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Listening listen_on_loopback() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (fd < 0 || bind(fd, std::bit_cast<sockaddr*>(&address), length) != 0 ||
      listen(fd, kBacklog) != 0 ||
      getsockname(fd, std::bit_cast<sockaddr*>(&address), &length) != 0) {
    fail("cannot listen on loopback");
  }
  return {.fd = fd, .port = ntohs(address.sin_port)};
}

int connect_to_loopback(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(port);
  if (fd < 0 || connect(fd, std::bit_cast<sockaddr*>(&address), sizeof address) != 0) {
    fail("cannot connect to loopback");
  }
  set_no_delay(fd);
  return fd;
}

pid_t in_child(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid < 0) {
    fail("fork");
  }
  if (pid != 0) {
    return pid;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    body();
  } catch (const std::exception&) {
    _exit(1);  // the peer has closed: the measurement is over
  }
  _exit(0);
}

pid_t start_echo(const Listening& listening, std::size_t bytes, std::size_t connections) {
  return in_child([&] {
    std::vector<int> sockets(connections);
    for (int& fd : sockets) {
      fd = accept(listening.fd, nullptr, nullptr);
      set_no_delay(fd);
    }
    std::vector<char> buffer(bytes);
    while (true) {
      for (const int fd : sockets) {
        read_all(fd, buffer.data(), bytes);
      }
      for (const int fd : sockets) {
        write_all(fd, buffer.data(), bytes);
      }
    }
  });
}

pid_t start_ps(const roles::Task& task) {
  return in_child([&] { roles::run_parameter_server(task); });
}

void read_all(int fd, void* data, std::size_t bytes) {
  for (auto* at = static_cast<char*>(data); bytes > 0;) {
    const ssize_t got = read(fd, at, bytes);
    if (got <= 0) {
      fail("read");
    }
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

void write_all(int fd, const void* data, std::size_t bytes) {
  for (const auto* at = static_cast<const char*>(data); bytes > 0;) {
    const ssize_t sent = write(fd, at, bytes);
    if (sent <= 0) {
      fail("write");
    }
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

}  // namespace disttf::bench
