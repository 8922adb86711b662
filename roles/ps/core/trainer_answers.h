// When a waiting trainer is answered, and with what. A request waits (in the trainer's record of
// Membership) until it can be answered and the answer would survive the loss of this host, if the
// range has another one.
//
// Not thread-safe: the ps's only thread owns it. `now`: the time of the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/messages.h"
#include "roles/ps/core/backup_sender.h"
#include "roles/ps/core/membership.h"
#include "roles/ps/core/micro_batch_scheduler.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/range_state.h"
#include "roles/ps/core/run_end.h"

namespace disttf::roles {

class TrainerAnswers {
 public:
  // All must outlive this object.
  TrainerAnswers(RangeState& state, Membership& trainers, const RunEnd& end,
                 const BackupSender& backup, Outbox& out)
      : state_(state), trainers_(trainers), end_(end), backup_(backup), out_(out) {}

  // Records the trainer's request, and answers it now if possible. No effect if a newer connection
  // has replaced this one.
  void wait(std::size_t rank, ConnectionId id, const net::TrainerRequest& request,
            Clock::time_point now);
  // The request is about a replaced state: its sender is to pull again.
  void fence(ConnectionId id, std::uint64_t request_id);
  // The same for all requests that wait for a step of such a state, or for an answer that will not
  // come.
  void fence_waiting();

  // Answers all waiting requests that can be answered now.
  void answer_waiting(Clock::time_point now);
  // Answers this trainer's request; and all others if that trainer has released some of them.
  void answer_after(std::size_t rank, Clock::time_point now);

  // Elastic, no effect otherwise. A step begins: schedules it over the trainers present.
  void share_step();
  // Assigns the missing micro-batches of the step to waiting trainers, if no trainer is at work.
  void schedule_missing();

 private:
  // Returns whether requests wait for a state.
  [[nodiscard]] bool awaits_state() const noexcept {
    return !state_.is_restored() && !end_.is_over();
  }
  void answer(std::size_t rank, Clock::time_point now);
  [[nodiscard]] bool is_answerable(std::size_t rank, const WaitingRequest& waiting,
                                   Clock::time_point now) const;
  // Returns whether the other host has what an answer to this request reveals.
  [[nodiscard]] bool is_safe(const WaitingRequest& request) const;
  // Returns whether this is a pull of a trainer that computes with another configuration than the
  // run's. It is answered with the run's configuration, not with parameters.
  [[nodiscard]] bool is_of_another(const WaitingRequest& request) const;
  // Returns what each trainer does, for the scheduler; valid until the next call.
  [[nodiscard]] std::span<const MicroBatchScheduler::Activity> activities();
  void send_config(const WaitingRequest& request);
  void send_parameters(std::size_t rank, const WaitingRequest& request);

  RangeState& state_;
  Membership& trainers_;
  const RunEnd& end_;
  const BackupSender& backup_;
  Outbox& out_;
  std::uint64_t looked_at_ = 0;  // Shard::releases() when all requests were last checked
  std::vector<MicroBatchScheduler::Activity> activities_;  // memory for activities()
};

}  // namespace disttf::roles
