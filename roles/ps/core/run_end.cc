#include "roles/ps/core/run_end.h"

#include <algorithm>

namespace disttf::roles {
namespace {

// How long a trainer that has just lost its connection, or has never connected, may take to
// (re)connect while the chief waits to conclude; and, when the run is over, how long connected
// trainers may take to leave. It must be longer than a final evaluation on a busy core, and short
// enough for a user who waits for the command to end.
constexpr std::chrono::milliseconds kGoodbyeGrace{1500};

}  // namespace

void RunEnd::begin_steps(bool expects_all) noexcept {
  expects_all_ = expects_all;
  // A restore undoes the end of steps, but not the end of the run.
  no_more_steps_ = no_more_steps_ && is_over();
}

void RunEnd::goodbye(std::size_t rank, Clock::time_point now) noexcept {
  // Workers leave without further agreement once the run is over; only the chief's GOODBYE counts.
  if (is_over()) {
    if (rank == 0) {
      chief_leaves_ = now;
    }
    return;
  }
  no_more_steps_ = true;
  // A chief that has reconnected repeats its GOODBYE, and its patience starts anew.
  if (rank == 0) {
    chief_done_ = now;
  }
}

void RunEnd::shut_down() noexcept {
  // max(): a repeated SHUTDOWN does not reopen a range that has ended.
  no_more_steps_ = true;
  phase_ = std::max(phase_, Phase::kOver);
}

void RunEnd::forgive(Clock::duration missed, Clock::time_point now) noexcept {
  chief_done_ = std::min(chief_done_ + missed, now);
  if (chief_leaves_) {
    chief_leaves_ = std::min(*chief_leaves_ + missed, now);
  }
}

bool RunEnd::may_leave(std::size_t rank, const Membership& trainers, Clock::time_point now) const {
  if (rank != 0) {
    return is_over();
  }
  // Workers may leave at once when the run is over; the chief leaves last, so that a ps whose
  // SHUTDOWN was lost can still get it.
  if (is_over()) {
    return chief_leaves_ && (trainers.others_have_left() || now - *chief_leaves_ >= kGoodbyeGrace);
  }
  // A present worker gets longer: it computes, or is being restored, and its gradient may count.
  return trainers.others_are_done(now, {.since = chief_done_,
                                        .disconnected = kGoodbyeGrace,
                                        .present = timeouts_.worker,
                                        .expects_all = expects_all_});
}

RunEnd::Due RunEnd::due(const Membership& trainers, Clock::time_point now) const {
  if (phase_ != Phase::kOver) {
    return Due::kNotYet;
  }
  if (may_leave(0, trainers, now)) {
    return Due::kChiefLeaves;
  }
  const TrainerRecord& chief = trainers.records().front();
  // Only some of the ps may have received SHUTDOWN, so a lost chief gets time to come back.
  const bool is_gone = !chief.alive() && now - chief.disconnected_since > timeouts_.peer;
  return is_gone ? Due::kChiefIsGone : Due::kNotYet;
}

}  // namespace disttf::roles
