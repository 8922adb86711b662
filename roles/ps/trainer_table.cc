#include "roles/ps/trainer_table.h"

#include <algorithm>

namespace disttf::roles {

TrainerTable::TrainerTable(const Task& task, Clock::time_point now)
    : task_(task), records_(task.cluster.trainer_count()) {
  for (TrainerRecord& record : records_) {
    record.absent_since = now;
  }
}

std::optional<std::string> TrainerTable::reason_to_refuse(std::size_t rank,
                                                          const net::Hello& hello) const {
  const TrainerRecord& record = records_[rank];
  if (hello.incarnation != 0 && hello.incarnation == record.replaced_incarnation) {
    return describe(task_.cluster, task_.cluster.trainer(rank)) +
           " has been replaced by a newer process; this one is no longer part of the run";
  }
  return std::nullopt;
}

bool TrainerTable::attach(std::size_t rank, const Connection& connection, Clock::time_point now) {
  TrainerRecord& record = records_[rank];
  const net::Hello& hello = connection->hello();
  if (record.joined && record.incarnation != hello.incarnation) {
    record.replaced_incarnation = record.incarnation;
    for (Connection* old : {&record.step, &record.control}) {
      if (*old) {
        (*old)->close();
        old->reset();
      }
    }
    record.waiting.reset();
    record.unshare();
  }
  record.incarnation = hello.incarnation;
  record.joined = true;
  record.goodbye = false;
  record.last_heard = now;
  const bool is_step = hello.purpose == net::ChannelPurpose::kStep;
  Connection& place = is_step ? record.step : record.control;
  const bool was_present = record.present();
  if (place) {
    place->close();
  }
  if (is_step) {
    record.waiting.reset();
    record.owed = 0;
  }
  place = connection;
  return is_step && !was_present;
}

bool TrainerTable::detach(std::size_t rank, const Connection& connection, Clock::time_point now) {
  TrainerRecord& record = records_[rank];
  // Neither, when a newer connection has replaced it meanwhile.
  const bool was_control = record.control == connection;
  const bool was_step = record.step == connection;
  if (was_control) {
    record.control.reset();
  }
  if (was_step) {
    record.step.reset();
    record.waiting.reset();
    record.owed = 0;
  }
  if (was_control || was_step) {
    record.absent_since = now;
  }
  return was_step;
}

void TrainerTable::close_silent(Clock::time_point now) {
  for (TrainerRecord& record : records_) {
    if (!record.present() || now - record.last_heard < task_.timeouts.silence) {
      continue;
    }
    record.step->close();
    if (record.control) {
      record.control->close();
    }
  }
}

std::optional<Absence> TrainerTable::overdue(Clock::time_point now,
                                             const std::vector<bool>& matters) const {
  for (std::size_t rank = 0; rank < records_.size(); ++rank) {
    const TrainerRecord& record = records_[rank];
    if (!matters[rank] || record.alive() || record.goodbye) {
      continue;
    }
    const auto limit = !record.joined ? task_.timeouts.start
                       : rank == 0    ? task_.timeouts.peer
                                      : task_.timeouts.worker;
    if (now - record.absent_since > limit) {
      return Absence{.rank = rank, .limit = limit, .joined = record.joined};
    }
  }
  return std::nullopt;
}

bool TrainerTable::only_chief_left(Clock::time_point now, Clock::duration grace,
                                   bool needed) const {
  return std::all_of(records_.begin() + 1, records_.end(), [&](const TrainerRecord& record) {
    return record.goodbye ||
           (record.joined ? !record.present() && now - record.absent_since >= grace
                          : !needed || !is_expected(record));
  });
}

bool TrainerTable::everybody_said_goodbye() const {
  return std::all_of(records_.begin() + 1, records_.end(), [&](const TrainerRecord& record) {
    return record.goodbye || (!record.joined && !is_expected(record));
  });
}

bool TrainerTable::is_expected(const TrainerRecord& record) const {
  const auto rank = static_cast<std::size_t>(&record - records_.data());
  return task_.cluster.is_listed(task_.cluster.trainer(rank));
}

std::string TrainerTable::never_seen() const {
  std::string list;
  for (std::size_t rank = 0; rank < records_.size(); ++rank) {
    if (!records_[rank].joined) {
      list += (list.empty() ? "" : ", ") + describe(task_.cluster, task_.cluster.trainer(rank));
    }
  }
  return list;
}

}  // namespace disttf::roles
