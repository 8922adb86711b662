#include "roles/ps/core/membership.h"

#include <algorithm>
#include <utility>

#include "net/wire/replication.h"

namespace disttf::roles {
namespace {

// A trainer that looks for the primary of a range tries one host after the other, a second each.
constexpr std::chrono::seconds kRedirectedFor{5};
// A trainer that has just started tries each host once, and may try the backup first.
constexpr std::chrono::seconds kInsistent{1};

}  // namespace

Membership::Membership(const Task& task, Clock::time_point now)
    : task_(task), records_(task.cluster.trainer_count()), too_few_since_(now) {
  for (TrainerRecord& record : records_) {
    record.disconnected_since = now;
  }
}

bool Membership::attach(std::size_t rank, ConnectionId connection, const net::Hello& hello,
                        Clock::time_point now, Outbox& out) {
  TrainerRecord& record = records_[rank];
  // present_ is counted anew below: this call may close a step channel, open one, or both.
  present_ -= record.present() ? 1U : 0U;
  if (!record.joined || record.incarnation != hello.incarnation) {
    const bool was_disowned = std::exchange(record.is_disowned, false);
    // A trainer that is already connected was not disconnected before; and a second refused process
    // must not overwrite what was saved before the first one.
    if (!record.alive() || !was_disowned) {
      record.had_joined = record.joined;
      record.was_disconnected_since = record.alive() ? now : record.disconnected_since;
    }
  }
  if (record.joined && record.incarnation != hello.incarnation) {
    for (ConnectionId* old : {&record.step, &record.control}) {
      out.close(std::exchange(*old, 0));
    }
    record.waiting.reset();
  }
  // The new process has not reached the end of the run, whatever the previous one has sent.
  if (record.incarnation != hello.incarnation) {
    record.done = false;
    record.name.clear();
  }
  record.incarnation = hello.incarnation;
  record.joined = true;
  record.last_received = now;
  const bool is_step = hello.purpose == net::ChannelPurpose::kStep;
  ConnectionId& place = is_step ? record.step : record.control;
  const bool was_present = record.present();
  out.close(place);
  // An answer on the old step channel may be lost, so its request is no longer outstanding.
  if (is_step) {
    record.waiting.reset();
    record.answered.reset();
  }
  // Only after the older connection was closed: detach() compares ids, so its end is then ignored.
  place = connection;
  present_ += record.present() ? 1U : 0U;
  return is_step && !was_present;
}

bool Membership::detach(std::size_t rank, ConnectionId connection, Clock::time_point now) {
  TrainerRecord& record = records_[rank];
  // Neither, if a newer connection has replaced it.
  const bool was_control = record.control == connection;
  const bool was_step = record.step == connection;
  if (was_control) {
    record.control = 0;
  }
  if (was_step) {
    record.step = 0;
    --present_;
    record.waiting.reset();
  }
  if (was_control || was_step) {
    record.disconnected_since = now;
  }
  // The refused process leaves no trace: the start timeout goes on from where it was.
  if (record.is_disowned && !record.alive()) {
    record.disconnected_since = record.was_disconnected_since;
    record.joined = record.had_joined;
  }
  return was_step;
}

void Membership::forgive(Clock::time_point now, Clock::duration missed) {
  for (TrainerRecord& record : records_) {
    // min(): time missed must not move a deadline into the future.
    record.last_received = std::min(record.last_received + missed, now);
    record.disconnected_since = std::min(record.disconnected_since + missed, now);
    record.was_disconnected_since = std::min(record.was_disconnected_since + missed, now);
  }
  if (too_few_since_) {
    too_few_since_ = std::min(*too_few_since_ + missed, now);
  }
}

void Membership::close_timed_out(Clock::time_point now, Outbox& out) const {
  for (const TrainerRecord& record : records_) {
    // Without a step channel no answer depends on the trainer yet.
    if (!record.present() || now - record.last_received < task_.timeouts.heartbeat_timeout) {
      continue;
    }
    out.close(record.step);
    out.close(record.control);
  }
}

void Membership::close_all(Outbox& out) const {
  for (const TrainerRecord& record : records_) {
    // The ids stay until detach(), which marks the trainers as absent.
    out.close(record.step);
    out.close(record.control);
  }
}

void Membership::close_steps(Outbox& out) {
  for (TrainerRecord& record : records_) {
    out.close(record.step);
    // The request is dropped here and not in detach(): callers drop the state that its answer
    // needs.
    record.waiting.reset();
  }
}

std::uint64_t Membership::unreachable_trainers(Clock::time_point now,
                                               Clock::duration longer_than) const {
  std::uint64_t set = 0;
  for (std::size_t rank = 0; rank < records_.size(); ++rank) {
    const TrainerRecord& record = records_[rank];
    if (record.joined && !record.done && !record.alive() &&
        now - record.disconnected_since > longer_than) {
      // Trainers 64 ranks apart share a bit (net::in_set()).
      set |= net::in_set(rank);
    }
  }
  return set;
}

std::uint64_t Membership::redirected_clients(Clock::time_point now) const {
  std::uint64_t set = 0;
  for (std::size_t rank = 0; rank < records_.size(); ++rank) {
    const TrainerRecord& record = records_[rank];
    if (now - record.last_redirected < kRedirectedFor &&
        record.last_redirected - record.redirected_since >= kInsistent) {
      set |= net::in_set(rank);
    }
  }
  return set;
}

void Membership::redirected(std::size_t rank, Clock::time_point now) {
  TrainerRecord& record = records_[rank];
  // A pause this long ends the series.
  if (now - record.last_redirected >= kRedirectedFor) {
    record.redirected_since = now;
  }
  record.last_redirected = now;
}

void Membership::need(std::size_t least, Clock::time_point now) {
  needed_ = least;
  // The time of too few trainers starts once, and not again with each trainer that leaves.
  if (present_ >= needed_) {
    too_few_since_.reset();
  } else if (!too_few_since_) {
    too_few_since_ = now;
  }
}

std::optional<OverdueTrainer> Membership::overdue(Clock::time_point now) const {
  const bool are_too_few = present_ < needed_;
  // If a step needs all trainers, the whole time of a disconnection counts, hence min().
  const Clock::time_point since =
      needed_ < records_.size() ? too_few_since_.value_or(now) : Clock::time_point::min();
  for (std::size_t rank = 0; rank < records_.size(); ++rank) {
    const TrainerRecord& record = records_[rank];
    const bool has_left =
        record.done && rank != 0;  // the chief has yet to say that the run is over
    const bool matters = rank == 0 || are_too_few;
    if (!matters || record.alive() || has_left) {
      continue;
    }
    const auto limit = !record.joined ? task_.timeouts.start
                       : rank == 0    ? task_.timeouts.peer
                                      : task_.timeouts.worker;
    // The chief's own disconnection counts in full; a worker's only since too few were present.
    if (now - (rank == 0 ? record.disconnected_since : std::max(record.disconnected_since, since)) >
        limit) {
      return OverdueTrainer{.rank = rank, .limit = limit, .joined = record.joined};
    }
  }
  return std::nullopt;
}

bool Membership::others_are_done(Clock::time_point now, const Patience& patience) const {
  const auto waited = now - patience.since;
  // begin() + 1: the chief is rank 0.
  return std::all_of(records_.begin() + 1, records_.end(), [&](const TrainerRecord& record) {
    if (record.done) {
      return true;
    }
    if (!record.joined) {
      // It may still be starting; if it does not come soon, the run ends without it.
      return !patience.expects_all || !is_expected(record) || waited >= patience.disconnected;
    }
    // A disconnection that began before the chief was done counts from its own beginning.
    return record.alive() ? waited >= patience.present
                          : now - record.disconnected_since >= patience.disconnected;
  });
}

bool Membership::others_have_left() const {
  return std::none_of(records_.begin() + 1, records_.end(),
                      [](const TrainerRecord& record) { return record.alive(); });
}

void Membership::none_is_done() noexcept {
  for (TrainerRecord& record : records_) {
    record.done = false;
  }
}

bool Membership::is_expected(const TrainerRecord& record) const {
  const auto rank = static_cast<std::size_t>(&record - records_.data());
  return task_.cluster.is_listed(task_.cluster.trainer(rank));
}

std::string Membership::never_seen() const {
  std::string list;
  for (std::size_t rank = 0; rank < records_.size(); ++rank) {
    if (!records_[rank].joined) {
      list += (list.empty() ? "" : ", ") + describe(task_.cluster, task_.cluster.trainer(rank));
    }
  }
  return list;
}

}  // namespace disttf::roles
