// The end of a run, as one range of a ps sees it. In order:
//
//   1. A trainer has its result and says GOODBYE. It is done, and waits here: the state may still
//      be lost, and be made again from a cut, and then its gradients are needed once more.
//   2. The chief says GOODBYE as well, and is answered when all others are done, or have been away
//      for too long. The parameters are final then: it saves and prints them. Where not every
//      gradient counts it fetches them once more, and what a trainer pushes that comes back after
//      that is dropped.
//   3. The chief says SHUTDOWN: the result is durable, the run is over. Nothing is taken back from
//      here on; whoever waits is answered, whoever comes late is told.
//   4. The chief says GOODBYE once more when all ps know: it needs nothing more. The ps ends when
//      the others have left, or have had their time to.
//
// A chief that dies after 3 is waited for, as it may have told only some of the ps; but the run is
// over, so a ps that waits in vain ends with 0.
//
// From the first GOODBYE on no more steps are waited for: where some gradients do not count, one
// may have come late here that counted at ps 0, so that the last step lacks one, and nobody is left
// to push it. A restore takes that back, until 3.
//
// Who is done, and who is there, is membership.h. A value. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "roles/ps/core/membership.h"
#include "roles/run/task.h"

namespace disttf::roles {

class RunEnd {
 public:
  explicit RunEnd(const Timeouts& timeouts) : timeouts_(timeouts) {}

  // --- what happens

  // There is a state here from which steps are made. `expects_all`: by every trainer in the lists,
  // so that the chief waits for one that was never seen, too.
  void begin_steps(bool expects_all) noexcept;
  // A trainer's GOODBYE counts: 1 and 2, or after 3 the chief's of 4.
  void goodbye(std::size_t rank, Clock::time_point now) noexcept;
  // The chief fetches the result: 2, also where this host has not heard it say GOODBYE.
  void conclude() noexcept { no_more_steps_ = true; }
  // SHUTDOWN.
  void shut_down() noexcept;
  // This range's part of the run is over, in whichever way.
  void end() noexcept { phase_ = Phase::kEnded; }
  // The state is no more, and what was said of its end with it. REQUIRES: not has_ended().
  void forget() noexcept { *this = RunEnd(timeouts_); }
  // `missed`: of the time until now, what this process did not see.
  void forgive(Clock::duration missed, Clock::time_point now) noexcept;

  // --- queries

  // Whoever waits for a step is answered without it.
  [[nodiscard]] bool no_more_steps() const noexcept { return no_more_steps_; }
  // The chief has said that the run is over.
  [[nodiscard]] bool is_over() const noexcept { return phase_ != Phase::kOpen; }
  [[nodiscard]] bool has_ended() const noexcept { return phase_ == Phase::kEnded; }
  // Whether a GOODBYE of this trainer, which has counted, can be answered.
  [[nodiscard]] bool may_leave(std::size_t rank, const Membership& trainers,
                               Clock::time_point now) const;
  // Whether this range's part is to end, and why.
  enum class Due : std::uint8_t {
    kNotYet,
    kChiefLeaves,  // 4: and nobody else is waited for any more
    kChiefIsGone,  // after 3, for too long
  };
  [[nodiscard]] Due due(const Membership& trainers, Clock::time_point now) const;

 private:
  enum class Phase : std::uint8_t { kOpen, kOver, kEnded };

  Timeouts timeouts_;
  Phase phase_ = Phase::kOpen;
  bool no_more_steps_ = false;
  bool expects_all_ = true;
  Clock::time_point chief_done_{};  // when the chief said that it has its result
  // The run is over, and the chief needs nothing more: since when.
  std::optional<Clock::time_point> chief_leaves_;
};

}  // namespace disttf::roles
