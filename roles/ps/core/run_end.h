// The end of a run (the shutdown protocol), as one range of a ps sees it. In order:
//
//   1. A trainer has its result and sends GOODBYE. It is done, and waits for the answer: the state
//      may still be lost and restored from a snapshot, and then its gradients are needed again.
//   2. The chief sends GOODBYE as well. It is answered when all other trainers are done, or have
//      been disconnected for too long. The parameters are final then: the chief saves and prints
//      them. If not every gradient counts, it fetches them once more; the pushes of a trainer that
//      comes back after that are dropped.
//   3. The chief sends SHUTDOWN: the result is durable, and the run is over. Nothing is undone
//      from here on. Waiting trainers are answered, and late ones learn that the run is over.
//   4. The chief sends GOODBYE once more when all ps have acknowledged: it needs nothing more. The
//      ps ends when the other trainers have left, or have exceeded their time to leave.
//
// If the chief dies after 3, the ps waits for it to come back, since only some of the ps may have
// received SHUTDOWN. But the run is over, so when that wait times out the ps ends with 0.
//
// From the first GOODBYE on no more steps are waited for. If not every gradient counts, a gradient
// that counted at ps 0 may have come too late here: the last step then lacks one gradient that no
// trainer is left to push. A restore before 3 undoes that.
//
// membership.h decides which trainers are present and done. A value. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "roles/ps/core/membership.h"
#include "run/task.h"

namespace disttf::roles {

class RunEnd {
 public:
  explicit RunEnd(const Timeouts& timeouts) : timeouts_(timeouts) {}

  // --- what happens

  // Steps are made from a state here. `expects_all`: by every listed trainer, so that the chief
  // also waits for one that has never connected.
  void begin_steps(bool expects_all) noexcept;
  // Counts a trainer's GOODBYE: that of 1 or 2, or, after 3, the chief's of 4.
  void goodbye(std::size_t rank, Clock::time_point now) noexcept;
  // The chief fetches the result: 2, even if its GOODBYE has not reached this host.
  void conclude() noexcept { no_more_steps_ = true; }
  // SHUTDOWN has arrived.
  void shut_down() noexcept;
  // This range's part of the run is over, for any reason.
  void end() noexcept { phase_ = Phase::kEnded; }
  // The state is dropped, and with it what was recorded about its end. REQUIRES: not has_ended().
  void forget() noexcept { *this = RunEnd(timeouts_); }
  // `missed`: how much of the time until now this process was suspended.
  void forgive(Clock::duration missed, Clock::time_point now) noexcept;

  // --- queries

  // Returns whether trainers that wait for a step are answered without it.
  [[nodiscard]] bool no_more_steps() const noexcept { return no_more_steps_; }
  // Returns whether the chief has ended the run.
  [[nodiscard]] bool is_over() const noexcept { return phase_ != Phase::kOpen; }
  [[nodiscard]] bool has_ended() const noexcept { return phase_ == Phase::kEnded; }
  // Returns whether a counted GOODBYE of this trainer can be answered.
  [[nodiscard]] bool may_leave(std::size_t rank, const Membership& trainers,
                               Clock::time_point now) const;
  // Whether this range's part is to end, and why.
  enum class Due : std::uint8_t {
    kNotYet,
    kChiefLeaves,  // 4, and no other trainer is waited for
    kChiefIsGone,  // for too long after 3
  };
  [[nodiscard]] Due due(const Membership& trainers, Clock::time_point now) const;

 private:
  enum class Phase : std::uint8_t { kOpen, kOver, kEnded };

  Timeouts timeouts_;
  Phase phase_ = Phase::kOpen;
  bool no_more_steps_ = false;
  bool expects_all_ = true;
  Clock::time_point chief_done_{};  // when the chief's GOODBYE of 2 arrived
  // Since when the run is over and the chief needs nothing more.
  std::optional<Clock::time_point> chief_leaves_;
};

}  // namespace disttf::roles
