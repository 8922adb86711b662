// Child processes to talk to over loopback: bare echoes, and real ps.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "roles/run/task.h"

namespace disttf::bench {

// A child process that is killed when the object goes.
class Peer {
 public:
  explicit Peer(pid_t pid) noexcept : pid_(pid) {}
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

 private:
  pid_t pid_;
};

// A listening TCP socket on 127.0.0.1.
struct Listening {
  int fd = -1;
  std::uint16_t port = 0;
};
[[nodiscard]] Listening listen_on_loopback();

// Runs `body` in a child that dies with this process and never returns into it.
[[nodiscard]] pid_t in_child(const std::function<void()>& body);

// Accepts so many connections, and again and again reads `bytes` bytes from each of them, then
// sends them back: blocking reads, blocking writes, TCP_NODELAY. What a round trip costs with
// nothing around it.
[[nodiscard]] pid_t start_echo(const Listening& listening, std::size_t bytes,
                               std::size_t connections = 1);

// A parameter server.
[[nodiscard]] pid_t start_ps(const roles::Task& task);

void read_all(int fd, void* data, std::size_t bytes);
void write_all(int fd, const void* data, std::size_t bytes);
[[nodiscard]] int connect_to_loopback(std::uint16_t port);

}  // namespace disttf::bench
