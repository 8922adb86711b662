// Where those wait who have connected to a task's port and have not said enough yet to be answered:
// a descriptor each, and nothing else. Whoever opens a thousand connections a second and says
// nothing, or half a handshake, so costs a task a few system calls each, and no turn of its own.
//
// One thread at a time; nothing here waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "net/transport/descriptor.h"

namespace disttf::net {

class Doorstep {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Arrival {
    Descriptor socket;
    Time until;  // as it was given: it tells which of two came first
  };

  // `for_tls`: enough is the first record of TLS, whole, or what cannot begin one; else, and where
  // `for_tls` is false, one byte. Throws std::system_error (out of descriptors).
  explicit Doorstep(bool for_tls);

  // A socket of TCP that does not block. It comes back where it has said enough already; it is
  // closed where it has ended without; else it waits here, until then at most.
  [[nodiscard]] std::optional<Descriptor> come(Descriptor socket, Time until);
  // Readable where ready() has something to do.
  [[nodiscard]] int fd() const noexcept { return epoll_.number(); }
  // A copy of it, the caller's to close. Throws std::system_error (out of descriptors).
  [[nodiscard]] int watched() const;
  // Those that have said enough meanwhile. Those that have ended without are closed.
  [[nodiscard]] std::vector<Arrival> ready();
  // How many have ended without having said enough.
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }

  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
  // When the first of them has waited for too long; REQUIRES: there is one.
  [[nodiscard]] Time first_until() const noexcept { return waiting_.begin()->second.until; }
  // Who came first. REQUIRES: there is one.
  [[nodiscard]] Descriptor take_oldest();

 private:
  struct Waiting {
    Descriptor socket;
    Time until;
    int wanted;  // bytes, before the kernel tells of it: SO_RCVLOWAT
  };
  enum class Standing : std::uint8_t { kWaits, kEnough, kEnded };
  struct Look {
    Standing standing = Standing::kEnough;
    int wanted = 1;  // where it waits: so many bytes before it is looked at again
  };
  [[nodiscard]] Look look_at(int fd) const noexcept;

  const bool for_tls_;
  Descriptor epoll_;
  std::map<std::uint64_t, Waiting> waiting_;  // in the order in which they came
  std::uint64_t next_ = 0;
  std::uint64_t ended_ = 0;
};

}  // namespace disttf::net
