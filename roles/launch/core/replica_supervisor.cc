#include "roles/launch/core/replica_supervisor.h"

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

#include "roles/launch/core/supervisor.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

// How long to read the pipes of tasks after the last one has ended: a process that left its group
// may hold a pipe open for ever.
constexpr std::chrono::seconds kDrainLimit{1};
// Delays between two attempts to create a process.
constexpr std::chrono::milliseconds kFirstStartDelay{100};
constexpr std::chrono::milliseconds kLongestStartDelay{5000};
// A shell's exit code for a killed program is this plus the signal's number.
constexpr int kSignalBase = 128;

}  // namespace

void ReplicaSupervisor::add(std::string prefix, bool is_worker,
                            const std::array<bool, kReplicaParts>& has) {
  tasks_.push_back({.prefix = std::move(prefix), .is_worker = is_worker, .has = has});
}

void ReplicaSupervisor::begin() {
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    start_next(task);
  }
  if (all_gone()) {
    effects_.add(ReplicasEnded{});
  }
}

// Starts the part after the one that has ended, if there is one.
void ReplicaSupervisor::start_next(std::size_t number) {
  ReplicaTask& task = tasks_[number];
  while (task.next < kReplicaParts) {
    const auto part = static_cast<ReplicaPart>(task.next);
    const bool has = task.has.at(task.next);
    ++task.next;
    if (has && may_run(task, part)) {
      task.ran = task.ran || part == ReplicaPart::kCommand;
      task.lives = true;
      effects_.add(part_to_start(number, task));
      return;
    }
  }
}

// The part before `next`, which is to be started.
StartPart ReplicaSupervisor::part_to_start(std::size_t number, const ReplicaTask& task) {
  return {.task = number, .part = static_cast<ReplicaPart>(task.next - 1)};
}

void ReplicaSupervisor::started(std::size_t number) {
  tasks_.at(number).fails_to_start_since.reset();
}

void ReplicaSupervisor::could_not_start(std::size_t number, const std::string& why, TimePoint now) {
  ReplicaTask& task = tasks_.at(number);
  if (!task.fails_to_start_since) {
    task.fails_to_start_since = now;
    task.delay = kFirstStartDelay;
    effects_.add(ReplicaWarning{task.prefix + " cannot be started: " + why +
                                "; trying again for up to " +
                                std::to_string(kStartPatience.count()) + " s"});
  }
  // A part that may no longer run is not retried.
  const bool may_wait = now - *task.fails_to_start_since < kStartPatience &&
                        may_run(task, part_to_start(number, task).part);
  if (may_wait) {
    task.start_at = now + task.delay;
    task.delay = std::min(2 * task.delay, kLongestStartDelay);
    return;
  }
  effects_.add(ReplicaWarning{task.prefix + " could not be started: " + why});
  ended(number, {.exit_code = kError}, now);
}

bool ReplicaSupervisor::may_run(const ReplicaTask& task, ReplicaPart part) const {
  return part == ReplicaPart::kFinalizer ? task.ran && !killed_ : !task.failed && !exit_code_;
}

void ReplicaSupervisor::ended(std::size_t number, const Ending& ending, TimePoint now) {
  tasks_.at(number).lives = false;
  if (ending.signal != 0 || ending.exit_code != kDone) {
    fail(number, ending, now);
  }
  start_next(number);
  if (!exit_code_ && workers_are_done()) {
    end_run(kDone, SIGTERM, now);
  }
  check_gone(now);
}

void ReplicaSupervisor::fail(std::size_t number, const Ending& ending, TimePoint now) {
  constexpr std::array<std::string_view, kReplicaParts> kNames = {"'s initializer", "",
                                                                  "'s finalizer"};
  ReplicaTask& task = tasks_[number];
  const std::size_t part = task.next - 1;
  const std::string sentence = task.prefix + std::string(kNames.at(part)) + " " + to_string(ending);
  task.failed = true;
  if (!exit_code_) {
    failed_ = number;
    effects_.add(ReplicaWarning{sentence + "; stopping the others"});
    end_run(ending.signal != 0 ? kSignalBase + ending.signal : ending.exit_code, SIGTERM, now);
  } else if (part == static_cast<std::size_t>(ReplicaPart::kFinalizer)) {
    effects_.add(ReplicaWarning{sentence + "; the run was over already"});
  }  // else launch stopped it
}

// Ends the run. Finalizers are not stopped: they are the cleanup.
void ReplicaSupervisor::end_run(int exit_code, int signal, TimePoint now) {
  // The first reason determines the exit code.
  exit_code_ = exit_code_.value_or(exit_code);
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    const ReplicaTask& task = tasks_[number];
    const bool is_finalizer = task.next == static_cast<std::size_t>(ReplicaPart::kFinalizer) + 1;
    if (task.lives && !is_finalizer) {
      effects_.add(SignalGroup{.task = number, .signal = signal});
    }
  }
  for (ReplicaTask& task : tasks_) {  // tasks that wait for a start check again whether they may
    task.start_at = task.start_at ? std::optional(now) : std::nullopt;
  }
  if (!all_gone()) {
    grace_at_ = now + kStopGrace;
  }
}

void ReplicaSupervisor::stop(int exit_code, int signal, TimePoint now) {
  if (all_gone()) {  // only unread output keeps the launch; the second signal ends the wait
    effects_.add(ReplicasEnded{});
  } else {
    end_run(exit_code, signal, now);
  }
}

void ReplicaSupervisor::pipe_ended() {
  --pipes_;
  if (pipes_ == 0 && all_gone()) {
    drained_at_.reset();
    effects_.add(ReplicasEnded{});
  }
}

void ReplicaSupervisor::check_gone(TimePoint now) {
  if (!all_gone()) {
    return;
  }
  grace_at_.reset();
  if (pipes_ > 0) {
    drained_at_ = now + kDrainLimit;
  } else {
    effects_.add(ReplicasEnded{});
  }
}

void ReplicaSupervisor::wait_for_pipes(TimePoint now) { drained_at_ = now + kDrainLimit; }

// Retries parts whose process could not be created. A part that may no longer run counts as ended.
void ReplicaSupervisor::start_again(TimePoint now) {
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    ReplicaTask& task = tasks_[number];
    if (!task.start_at || *task.start_at > now) {
      continue;
    }
    task.start_at.reset();
    const StartPart order = part_to_start(number, task);
    if (may_run(task, order.part)) {
      effects_.add(order);
    } else {
      ended(number, {.exit_code = kDone}, now);
    }
  }
}

void ReplicaSupervisor::time(TimePoint now) {
  if (drained_at_ && *drained_at_ <= now) {
    drained_at_.reset();
    effects_.add(PipesAreLate{});
  }
  start_again(now);
  if (!grace_at_ || *grace_at_ > now) {
    return;
  }
  grace_at_.reset();
  killed_ = true;
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    if (tasks_[number].lives) {
      effects_.add(ReplicaWarning{tasks_[number].prefix + " did not end within " +
                                  std::to_string(kStopGrace.count()) + " s; killing it"});
      effects_.add(SignalGroup{.task = number, .signal = SIGKILL});
    }
  }
}

ReplicaSupervisor::TimePoint ReplicaSupervisor::deadline() const {
  TimePoint next =
      std::min(grace_at_.value_or(TimePoint::max()), drained_at_.value_or(TimePoint::max()));
  for (const ReplicaTask& task : tasks_) {
    next = std::min(next, task.start_at.value_or(next));
  }
  return next;
}

int ReplicaSupervisor::exit_code() const { return exit_code_.value_or(kDone); }

bool ReplicaSupervisor::all_gone() const {
  return std::ranges::none_of(tasks_, &ReplicaTask::lives);
}

bool ReplicaSupervisor::workers_are_done() const {
  return std::ranges::none_of(tasks_,
                              [](const ReplicaTask& task) { return task.is_worker && task.lives; });
}

}  // namespace disttf::roles
