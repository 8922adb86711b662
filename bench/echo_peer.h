// Child processes as peers over loopback: plain echoes, and real ps.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "run/task.h"

namespace disttf::bench {

// A child process, which is killed when the object is destroyed.
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

// Runs `body` in a child process that dies with this process and never returns into it.
[[nodiscard]] pid_t in_child(const std::function<void()>& body);

// Accepts the given number of connections, and repeatedly reads `bytes` bytes from each of them,
// then sends them back: blocking reads and writes, TCP_NODELAY. Measures the bare cost of a round
// trip.
[[nodiscard]] pid_t start_echo(const Listening& listening, std::size_t bytes,
                               std::size_t connections = 1);

// Starts a parameter server in a child process.
[[nodiscard]] pid_t start_ps(const roles::Task& task);

void read_all(int fd, void* data, std::size_t bytes);
void write_all(int fd, const void* data, std::size_t bytes);
[[nodiscard]] int connect_to_loopback(std::uint16_t port);

}  // namespace disttf::bench
