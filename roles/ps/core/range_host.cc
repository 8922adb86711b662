#include "roles/ps/core/range_host.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace disttf::roles {

RangeHost::RangeHost(const Task& its_task, std::uint8_t number, std::size_t threads,
                     RangeState::MakeArena make_arena, ProcessOrder& its_order,
                     Clock::time_point when)
    : task(its_task),
      order(its_order),
      replica(number),
      now(when),
      trainers(task, when),
      state(task, (task.self.index + task.cluster.ps.size() - replica) % task.cluster.ps.size(),
            threads, std::move(make_arena),
            [this](const ShardUpdate& update) { backup.forward(update); }),
      end(task.timeouts),
      times(task.cluster.trainer_count()) {
  count_needed();
}

void RangeHost::received(const PeerConnection& from) {
  TrainerRecord& record = trainers[from.rank];
  record.last_received = now;
  if (record.step == from.id && from.header.kind != net::FrameKind::kHeartbeat) {
    record.answered.reset();  // it has received what it was sent
  }
}

void RangeHost::count_needed() {
  const bool is_served_here =
      // Only the host that serves the range counts its trainers.
      role == net::ReplicaRole::kPrimary || (role == net::ReplicaRole::kOnly && replica == 0);
  trainers.need(is_served_here ? state.trainers_needed() : 0, now);
}

void RangeHost::serve_evaluators() {
  Shard* const shard = state.shard().get();
  evaluators.serve({.shard = shard,
                    .generation = state.generation(),
                    .has_steps = is_training(),
                    // The state of a range that was dropped, or is not the result, must not be
                    // taken for it.
                    .has_result = is_finishing() && shard != nullptr && state.is_restored() &&
                                  state.may_be_result(),
                    .is_over = is_finishing()});
}

void RangeHost::begin_run(const RunConfig& config, std::string json, ConnectionId chief) {
  // Only a replaced shard has replies that borrow from it.
  for (const TrainerRecord& record : trainers.records()) {
    // The chief's channel stays open: it has just published, and waits for the answer.
    if (state.shard() && record.step != chief) {
      out.close(record.step);  // a reply may still borrow the old shard's memory
    }
  }
  if (state.shard()) {
    evaluators.close();  // they request the configuration when they open a channel
  }
  try {
    state.begin_run(config, std::move(json));
  } catch (...) {
    // The old shard is gone although there is no new one.
    count_needed();
    throw;
  }
  // A new shard counts no trainer as joined; those that are connected do not connect again.
  for (std::size_t rank = 0; rank < trainers.size(); ++rank) {
    if (trainers[rank].present()) {
      state.shard()->policy().join(rank);
    }
  }
  count_needed();
}

// If every gradient counts, the current step becomes the last one, and the run ends as after its
// regular last step: waiting trainers are answered once the other host has acknowledged. In the
// other modes trainers that wait for a step are answered without it (RunEnd::no_more_steps()).
void RangeHost::conclude() {
  // Only the first time is an entry of the log: a chief repeats its pull after a lost link.
  const bool is_news = !state.shard()->is_concluded() && !state.shard()->finished();
  state.shard()->conclude();
  if (is_news) {
    backup.conclude();
  }
  stop_steps();
}

void RangeHost::stop_steps() {
  if (!state.shard()->config().every_gradient_counts()) {
    end.conclude();
  }
  count_needed();
}

void RangeHost::check_end() {
  if (awaits_state() || has_ended()) {
    return;
  }
  const TrainerRecord& chief = trainers[0];
  if (chief.waiting && chief.waiting->is<net::Goodbye>()) {
    answers.answer_waiting(now);  // its time may have come without another event
  }
  switch (end.due(trainers, now)) {
    case RunEnd::Due::kNotYet:
      break;
    case RunEnd::Due::kChiefLeaves:
      finish(chief.step);
      break;
    case RunEnd::Due::kChiefIsGone:
      out.info("the run is over, and the chief has been gone for " +
               seconds_text(task.timeouts.peer));
      finish(0);
      break;
  }
}

void RangeHost::finish(ConnectionId chief) {
  if (has_ended()) {
    return;
  }
  end.end();
  DrainConnections last;
  if (chief != 0) {
    last.ids.push_back(chief);
  }
  if (role == net::ReplicaRole::kPrimary && state.shard()) {
    out.info("range " + std::to_string(state.index()) + ": " +
             std::to_string(state.shard()->counters().applied) + " gradients applied, generation " +
             std::to_string(net::number_of(state.generation())));
  }
  const std::vector<ConnectionId> evaluating = evaluators.ids();
  last.ids.insert(last.ids.end(), evaluating.begin(), evaluating.end());
  if (const ConnectionId other = backup.end(); other != 0) {
    last.ids.push_back(other);
  }
  // The report says that this range has ended, so the chief does not count the closing host as
  // lost.
  if (view_channel != 0) {
    send_report();
    last.ids.push_back(view_channel);
  }
  out.add(std::move(last));
}

void RangeHost::forget_state() {
  if (!state.shard()) {
    return;
  }
  trainers.close_steps(out);  // a reply may still borrow the shard's memory
  state.forget();
  end.forget();
  count_needed();
}

void RangeHost::lose_backup() {
  if (backup.lose()) {
    send_report();
    answers.answer_waiting(now);
  }
}

// How long a trainer is disconnected from this primary before the report lists it as unreachable:
// no longer than it takes to notice a lost connection, and well before any task gives up.
Clock::duration RangeHost::patience() const {
  const Timeouts& timeouts = task.timeouts;
  return std::min<Clock::duration>(timeouts.heartbeat_timeout,
                                   std::min<Clock::duration>(timeouts.worker, timeouts.peer) / 2);
}

net::Report RangeHost::report() const {
  const bool is_primary = role == net::ReplicaRole::kPrimary;
  return {.view = view.number,
          .replica_role = role,
          .holds = is_primary ? !awaits_state() : is_complete_copy(),
          .wants_alone = is_primary && backup.needs_acks() && backup.connection() == 0,
          .wants_pair = is_primary && backup.is_complete() && !view.paired,
          // A run that has failed here goes on at the other host.
          .finished = has_ended() && !verdict,
          .paired = view.paired,
          .trainers = is_primary ? trainers.unreachable_trainers(now, patience())
                                 : trainers.redirected_clients(now)};
}

void RangeHost::send_report() {
  if (view_channel != 0) {
    out.send(view_channel, net::ReportFrame{}.to_header(), net::encode(report()));
  }
}

}  // namespace disttf::roles
