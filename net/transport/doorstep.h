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

  // `for_tls`: enough is the first record of TLS, whole, or what cannot begin one; else, and where
  // `for_tls` is false, one byte. Throws std::system_error (out of descriptors).
  explicit Doorstep(bool for_tls);

  // A socket of TCP that does not block. It comes back where it has said enough already, or has
  // ended; else it waits here, until then at most.
  [[nodiscard]] std::optional<Descriptor> come(Descriptor socket, Time until);
  // Readable where ready() has some.
  [[nodiscard]] int fd() const noexcept { return epoll_.number(); }
  // Those that have said enough meanwhile, or have ended.
  [[nodiscard]] std::vector<Descriptor> ready();

  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
  // When the first of them has waited for too long; REQUIRES: there is one.
  [[nodiscard]] Time first_until() const noexcept { return waiting_.begin()->second.until; }
  // Who came first. REQUIRES: there is one.
  [[nodiscard]] Descriptor take_oldest();
  void clear() noexcept { waiting_.clear(); }

 private:
  struct Waiting {
    Descriptor socket;
    Time until;
    bool is_asked_for_more = false;  // than a byte, before epoll tells of it
  };
  // Of what it has to say before it is looked at again; nullopt: it has said enough.
  [[nodiscard]] std::optional<int> bytes_wanted(int fd) const noexcept;

  const bool for_tls_;
  Descriptor epoll_;
  std::map<std::uint64_t, Waiting> waiting_;  // in the order in which they came
  std::uint64_t next_ = 0;
};

}  // namespace disttf::net
