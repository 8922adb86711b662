// Child processes to talk to over loopback: a bare echo, and a real ps.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "roles/task.h"

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

// Accepts one connection and sends back every `bytes` bytes: blocking read, blocking write,
// TCP_NODELAY. What a round trip costs with nothing around it.
[[nodiscard]] pid_t start_echo(const Listening& listening, std::size_t bytes);

// A parameter server of a cluster of one ps and one worker.
[[nodiscard]] pid_t start_ps(const roles::Task& task);

void read_all(int fd, void* data, std::size_t bytes);
void write_all(int fd, const void* data, std::size_t bytes);
[[nodiscard]] int connect_to_loopback(std::uint16_t port);

}  // namespace disttf::bench
