// A channel that loses, cuts, delays, repeats and reorders frames on purpose: for tests of code
// that has to survive that.
//
// What happens to a frame is a pure function of (seed, stream, its number). Requests are counted
// from 0 over all connections of one injector; a reply has its request's number. HEARTBEAT and WORK
// are not affected and not counted, because their number depends on the clock. Two runs that send
// the same requests therefore get the same faults, whatever the timing.
//
// net/ does not depend on math/: random numbers come through a function pointer, as in
// data/sampler.h. Not thread-safe: one thread owns an injector and its channels.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/tcp/channel.h"

namespace disttf::net {

// All faults but the last three close the connection and return an error to the caller. A reply can
// have only the first three and kDelayed.
enum class FrameFault : std::uint8_t {
  kNone,
  kLost,         // not sent, or (a reply) received and discarded
  kCut,          // ends after any of its bytes but the last
  kUnconfirmed,  // a request: sent whole, but reported to the sender as lost
  kOvertaken,    // a request: kLost, but arrives after the next connection's first one
  kDelayed,      // arrives up to FaultOptions::longest_delay later
  kTwice,        // a request: sent twice in a row
  kAgainLater,   // a request: sent, and again after one of the next eight requests,
                 // whatever has happened to connection, run and peer meanwhile
};

// math/random.h's random_bits or a similar function: a pure function of its arguments.
using RandomBits = std::uint64_t (*)(std::uint64_t seed, std::uint32_t purpose,
                                     std::uint64_t stream, std::uint64_t index);

struct FaultOptions {
  std::uint64_t seed = 0;
  std::uint32_t per_1000 = 0;  // expected faults per 1000 frames, at most 1000
  std::uint32_t purpose = 0;   // for random_bits
  std::uint64_t stream = 0;    // a different one for each pair of tasks
  RandomBits random_bits = nullptr;
  // Well below any heartbeat timeout: a longer delay would be just another kind of loss.
  std::chrono::milliseconds longest_delay{100};
  std::function<void(const std::string&)> log = {};  // gets a sentence a fault; may be empty
};

struct FrameFate {
  FrameFault fault = FrameFault::kNone;
  std::uint32_t amount = 0;  // where to cut, how long to wait: modulo what is possible
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

  // Wraps `channel`, which must be destroyed before the injector. `interrupt` ends delays and must
  // outlive the result. Only PULL, PUSH and PUSH_PULL ever arrive late (kOvertaken, kAgainLater).
  // No connection can deliver a message of an earlier one, so a late message that sets a state or
  // says goodbye would be a fault that no network has. Other requests are lost, or sent twice,
  // instead.
  [[nodiscard]] std::unique_ptr<Channel> wrap(std::unique_ptr<Channel> channel,
                                              const Interrupt& interrupt);

 private:
  friend class FaultyChannel;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace disttf::net
