// When a trainer that waits is answered, and with what. Whoever asks waits here (in Membership's
// record of it), and is answered once there is what it asked for, and it would survive the loss of
// this host where the range has another one.
//
// Not thread-safe: the ps's one thread owns it. `now` of a call: as in range_replica.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/messages.h"
#include "roles/ps/core/backup_sender.h"
#include "roles/ps/core/membership.h"
#include "roles/ps/core/micro_batch_dealer.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/range_state.h"
#include "roles/ps/core/run_end.h"

namespace disttf::roles {

class TrainerAnswers {
 public:
  // All must outlive it.
  TrainerAnswers(RangeState& state, Membership& trainers, const RunEnd& end,
                 const BackupSender& backup, Outbox& out)
      : state_(state), trainers_(trainers), end_(end), backup_(backup), out_(out) {}

  // The trainer asks, and is answered now if it can be. No effect where a newer connection has
  // taken this one's place.
  void wait(std::size_t rank, ConnectionId id, const net::TrainerRequest& request,
            Clock::time_point now);
  // The request is about a state that is no more: its sender is to pull again.
  void fence(ConnectionId id, std::uint64_t request_id);
  // The same of all who wait for a step of such a state, or for an answer that there will not be.
  void fence_waiting();

  // Something has happened for which any of those who wait may be answerable.
  void answer_waiting(Clock::time_point now);
  // The same: this one; and if by what it did others were released, all.
  void answer_after(std::size_t rank, Clock::time_point now);

  // Elastic, no effect otherwise. A step begins: it is shared among those who are here.
  void share_step();
  // What is missing of the step is dealt to those who wait, where nobody is at work.
  void deal_missing();

 private:
  // Requests wait for a state.
  [[nodiscard]] bool awaits_state() const noexcept {
    return !state_.is_restored() && !end_.is_over();
  }
  void answer(std::size_t rank, Clock::time_point now);
  [[nodiscard]] bool is_answerable(std::size_t rank, const WaitingRequest& waiting,
                                   Clock::time_point now) const;
  // Whether the other host has what an answer to this request would tell.
  [[nodiscard]] bool is_safe(const WaitingRequest& request) const;
  // A pull of a trainer that computes with another configuration than the run's: it is answered
  // with that, not with parameters.
  [[nodiscard]] bool is_of_another(const WaitingRequest& request) const;
  // What the dealer is told of the trainers; valid until the next call.
  [[nodiscard]] std::span<const MicroBatchDealer::Activity> activities();
  void send_config(const WaitingRequest& request);
  void send_parameters(std::size_t rank, const WaitingRequest& request);

  RangeState& state_;
  Membership& trainers_;
  const RunEnd& end_;
  const BackupSender& backup_;
  Outbox& out_;
  std::uint64_t looked_at_ = 0;  // Shard::releases() when all who wait were last looked at
  std::vector<MicroBatchDealer::Activity> activities_;  // memory for activities()
};

}  // namespace disttf::roles
