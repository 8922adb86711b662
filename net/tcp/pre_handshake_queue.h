// The pre-handshake queue: accepted connections that have not yet sent enough to be answered. Each
// costs one descriptor and nothing else. A client that opens a thousand connections a second and
// sends nothing, or half a handshake, therefore costs a few system calls each and no coroutine.
//
// Use by one thread at a time; nothing here blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "net/waiting/descriptor.h"

namespace disttf::net {

class PreHandshakeQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Arrival {
    Descriptor socket;
    Time until;  // as passed to add(); orders arrivals
  };

  // With `for_tls`, enough is a whole first TLS record, or bytes that cannot begin one. Without,
  // enough is one byte. Throws std::system_error (out of descriptors).
  explicit PreHandshakeQueue(bool for_tls);

  // Takes a non-blocking TCP socket. Returns it if it has sent enough already; closes it if it has
  // ended without; otherwise queues it until `until`.
  [[nodiscard]] std::optional<Descriptor> add(Descriptor socket, Time until);
  // Readable when ready() has something to do.
  [[nodiscard]] int fd() const noexcept { return epoll_.number(); }
  // A duplicate of fd(), which the caller closes. Throws std::system_error (out of descriptors).
  [[nodiscard]] int watched() const;
  // Returns the connections that have sent enough by now. Closes those that have ended without.
  [[nodiscard]] std::vector<Arrival> ready();
  // How many have ended before they had sent enough.
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }

  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
  // The earliest deadline. REQUIRES: the queue is not empty.
  [[nodiscard]] Time first_until() const noexcept { return waiting_.begin()->second.until; }
  // Removes and returns the connection that came first. REQUIRES: the queue is not empty.
  [[nodiscard]] Descriptor take_oldest();

 private:
  struct Waiting {
    Descriptor socket;
    Time until;
    int wanted;  // bytes before the kernel reports it readable: SO_RCVLOWAT
  };
  enum class HelloState : std::uint8_t { kWaits, kEnough, kEnded };
  struct Look {
    HelloState hello_state = HelloState::kEnough;
    int wanted = 1;  // for kWaits: bytes before it is checked again
  };
  [[nodiscard]] Look look_at(int fd) const noexcept;

  const bool for_tls_;
  Descriptor epoll_;
  std::map<std::uint64_t, Waiting> waiting_;  // in the order of arrival
  std::uint64_t next_ = 0;
  std::uint64_t ended_ = 0;
};

}  // namespace disttf::net
