// A channel that loses, cuts, delays, repeats and reorders frames on purpose: for tests of whatever
// has to survive that.
//
// What happens to a frame is a pure function of (seed, stream, its number): requests are counted
// from 0 over all connections of one injector, and a reply has its request's number. HEARTBEAT
// and WORK are left alone and not counted, since how many there are is the clock's doing. So two
// runs that send the same requests meet the same faults, however long anything takes.
//
// Net/ does not know math/: random numbers come through a function pointer, as in data/sampler.h.
// Not thread-safe: one thread owns an injector and its channels.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/transport/channel.h"

namespace disttf::net {

// After each fault but the last three the connection is closed and the caller is told so. A reply
// suffers the first three and kDelayed only.
enum class FrameFault : std::uint8_t {
  kNone,
  kLost,         // not sent, or (a reply) received and thrown away
  kCut,          // ends after any of its bytes but the last
  kUnconfirmed,  // a request: sent whole, but the sender is told that it was not
  kOvertaken,    // a request: kLost, but it comes after all, behind the next connection's first one
  kDelayed,      // comes up to FaultOptions::longest_delay later
  kTwice,        // a request: sent twice in a row
  kAgainLater,   // a request: sent, and again behind one of the next eight, whatever has happened
                 // to the connection, the run and the peer meanwhile
};

// math/random.h's random_bits, or what is like it: a pure function of its arguments.
using RandomBits = std::uint64_t (*)(std::uint64_t seed, std::uint32_t purpose,
                                     std::uint64_t stream, std::uint64_t index);

struct FaultOptions {
  std::uint64_t seed = 0;
  std::uint32_t per_1000 = 0;  // faults expected in 1000 frames, at most 1000
  std::uint32_t purpose = 0;   // for random_bits
  std::uint64_t stream = 0;    // whose frames: another one for each two tasks
  RandomBits random_bits = nullptr;
  // Well below any timeout on silence: a longer delay would only be another way of losing.
  std::chrono::milliseconds longest_delay{100};
  std::function<void(const std::string&)> log = {};  // each fault, in words; may be empty
};

struct FrameFate {
  FrameFault fault = FrameFault::kNone;
  std::uint32_t amount = 0;  // where to cut, how long to wait: taken modulo what is possible
};

// Pure. REQUIRES: options.random_bits is set.
[[nodiscard]] FrameFate fate_of_request(const FaultOptions& options, std::uint64_t number);
[[nodiscard]] FrameFate fate_of_reply(const FaultOptions& options, std::uint64_t number);

class FaultInjector {
 public:
  explicit FaultInjector(FaultOptions options);
  ~FaultInjector();
  FaultInjector(FaultInjector&& other) noexcept;
  FaultInjector& operator=(FaultInjector&& other) noexcept;

  // `channel`, from now on subject to faults; it must go before the injector. `interrupt` ends
  // delays and must outlive it. Only PULL, PUSH and PUSH_PULL ever come late (kOvertaken,
  // kAgainLater): no connection can deliver a message of the one before, and a state that is set,
  // or a goodbye that is said, by such a message would be a fault that no network makes. Other
  // requests are then lost, or sent twice.
  [[nodiscard]] std::unique_ptr<Channel> wrap(std::unique_ptr<Channel> channel,
                                              const Interrupt& interrupt);

 private:
  friend class FaultyChannel;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace disttf::net
