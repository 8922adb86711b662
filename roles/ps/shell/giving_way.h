// Whether a ps that has nothing to do gives way to others once before it sleeps. Trainers that
// share its processor, and are about to push, then find it awake: no frames, and no wake-ups.
//
// Where every task of a host has a processor of its own, or waits, it does. Where there are more,
// trainers that compute a gradient first would have it wait for that: there only while frames come
// so close that they have little to compute. And whoever always has something to compute has the
// processor for some milliseconds each time: after a turn of that length the next times are slept
// through, 1 of them, then 3, 7, up to 63.
//
// It is told what time it is. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>

#include "net/transport/interrupt.h"

namespace disttf::roles {

class GivingWay {
 public:
  // `has_room`: no task of the host takes a processor from another one.
  GivingWay(bool has_room, net::Clock::time_point now) noexcept : has_room_(has_room), came_(now) {}

  // So many frames, or other things to do, have come by `now`. REQUIRES: count > 0.
  void came(std::size_t count, net::Clock::time_point now) noexcept;
  // Whether to give way now; then took() follows.
  [[nodiscard]] bool begins() noexcept;
  // So long others had the processor.
  void took(net::Clock::duration turn) noexcept;

 private:
  static constexpr net::Clock::duration kFar = std::chrono::milliseconds(1);

  const bool has_room_;
  net::Clock::time_point came_;          // the newest
  net::Clock::duration distance_{kFar};  // from one to the next, lately
  int short_turns_ = 0;                  // since the last long one
  unsigned asleep_ = 0;                  // times that are still slept through
  unsigned penalty_ = 0;                 // as many as those will be after the last long turn
};

}  // namespace disttf::roles
