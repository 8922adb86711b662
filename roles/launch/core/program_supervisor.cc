#include "roles/launch/core/program_supervisor.h"

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

#include "roles/launch/core/supervisor.h"
#include "run/outcome.h"

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

void ProgramSupervisor::add(std::string prefix, bool is_worker,
                            const std::array<bool, kProgramParts>& has) {
  tasks_.push_back({.prefix = std::move(prefix), .is_worker = is_worker, .has = has});
}

void ProgramSupervisor::begin() {
  for (std::size_t task = 0; task < tasks_.size(); ++task) {
    start_next(task);
  }
  // No task has a part that runs, so no ending would ever report the end.
  if (all_gone()) {
    effects_.add(ProgramsEnded{});
  }
}

// Starts the part after the one that has ended, if there is one.
void ProgramSupervisor::start_next(std::size_t number) {
  ProgramTask& task = tasks_[number];
  while (task.next < kProgramParts) {
    const auto part = static_cast<ProgramPart>(task.next);
    const bool has = task.has.at(task.next);
    // Advances past parts that are skipped, too: each part is considered once.
    ++task.next;
    if (has && may_run(task, part)) {
      task.lives = true;
      effects_.add(part_to_start(number, task));
      return;
    }
  }
}

// The part before `next`, which is to be started.
StartPart ProgramSupervisor::part_to_start(std::size_t number, const ProgramTask& task) {
  return {.task = number, .part = static_cast<ProgramPart>(task.next - 1)};
}

void ProgramSupervisor::started(std::size_t number) {
  ProgramTask& task = tasks_.at(number);
  task.fails_to_start_since.reset();
  task.ran = task.ran || part_to_start(number, task).part == ProgramPart::kCommand;
}

void ProgramSupervisor::could_not_start(std::size_t number, const std::string& why, TimePoint now) {
  ProgramTask& task = tasks_.at(number);
  if (!task.fails_to_start_since) {
    task.fails_to_start_since = now;
    task.delay = kFirstStartDelay;
    effects_.add(ProgramWarning{task.prefix + " cannot be started: " + why +
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
  effects_.add(ProgramWarning{task.prefix + " could not be started: " + why});
  // The same path as a part that ran and failed: the run ends. The finalizer follows only a command
  // whose process was created.
  ended(number, {.exit_code = kError}, now);
}

bool ProgramSupervisor::may_run(const ProgramTask& task, ProgramPart part) const {
  // A finalizer runs after a failure and after the end of the run, but not after the SIGKILL at the
  // end of the grace period: nothing would bound its run time then.
  return part == ProgramPart::kFinalizer ? task.ran && !killed_ : !task.failed && !exit_code_;
}

void ProgramSupervisor::ended(std::size_t number, const Ending& ending, TimePoint now) {
  tasks_.at(number).lives = false;
  if (ending.signal != 0 || ending.exit_code != kDone) {
    fail(number, ending, now);
  }
  // After fail(), so that may_run() sees the failure: the command does not start after a failed
  // initializer. Before workers_are_done(), which must count the next part as alive.
  start_next(number);
  if (!exit_code_ && workers_are_done()) {
    // Programs of ps tasks rarely end by themselves, so the end of the workers stops them.
    end_run(kDone, SIGTERM, now);
  }
  check_gone(now);
}

void ProgramSupervisor::fail(std::size_t number, const Ending& ending, TimePoint now) {
  constexpr std::array<std::string_view, kProgramParts> kNames = {"'s initializer", "",
                                                                  "'s finalizer"};
  ProgramTask& task = tasks_[number];
  const std::size_t part = task.next - 1;
  const std::string sentence = task.prefix + std::string(kNames.at(part)) + " " + to_string(ending);
  task.failed = true;
  if (!exit_code_) {
    failed_ = number;
    effects_.add(ProgramWarning{sentence + "; stopping the others"});
    end_run(ending.signal != 0 ? kSignalBase + ending.signal : ending.exit_code, SIGTERM, now);
  } else if (part == static_cast<std::size_t>(ProgramPart::kFinalizer)) {
    effects_.add(ProgramWarning{sentence + "; the run was over already"});
  }  // else launch stopped it
}

// Ends the run. Finalizers are not stopped: they are the cleanup.
void ProgramSupervisor::end_run(int exit_code, int signal, TimePoint now) {
  // The first reason determines the exit code.
  exit_code_ = exit_code_.value_or(exit_code);
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    const ProgramTask& task = tasks_[number];
    const bool is_finalizer = task.next == static_cast<std::size_t>(ProgramPart::kFinalizer) + 1;
    if (task.lives && !is_finalizer) {
      effects_.add(SignalGroup{.task = number, .signal = signal});
    }
  }
  // A task that waits counts as alive but has no process, so a signal cannot end it.
  for (ProgramTask& task : tasks_) {  // tasks that wait for a start check again whether they may
    task.start_at = task.start_at ? std::optional(now) : std::nullopt;
  }
  // A repeated stop starts the grace period over.
  if (!all_gone()) {
    grace_at_ = now + kStopGrace;
  }
}

void ProgramSupervisor::stop(int exit_code, int signal, TimePoint now) {
  if (all_gone()) {  // only unread output keeps the launch; the second signal ends the wait
    effects_.add(ProgramsEnded{});
  } else {
    end_run(exit_code, signal, now);
  }
}

void ProgramSupervisor::pipe_ended() {
  --pipes_;
  if (pipes_ == 0 && all_gone()) {
    drained_at_.reset();
    effects_.add(ProgramsEnded{});
  }
}

void ProgramSupervisor::check_gone(TimePoint now) {
  if (!all_gone()) {
    return;
  }
  grace_at_.reset();
  if (pipes_ > 0) {
    // Waits for the pipes: the last lines of a task arrive after its process has been reaped.
    drained_at_ = now + kDrainLimit;
  } else {
    effects_.add(ProgramsEnded{});
  }
}

void ProgramSupervisor::wait_for_pipes(TimePoint now) { drained_at_ = now + kDrainLimit; }

// Retries parts whose process could not be created. A part that may no longer run counts as ended.
void ProgramSupervisor::start_again(TimePoint now) {
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    ProgramTask& task = tasks_[number];
    if (!task.start_at || *task.start_at > now) {
      continue;
    }
    task.start_at.reset();
    const StartPart effect = part_to_start(number, task);
    if (may_run(task, effect.part)) {
      effects_.add(effect);
    } else {
      ended(number, {.exit_code = kDone}, now);
    }
  }
}

void ProgramSupervisor::time(TimePoint now) {
  // The pipes' limit and the grace period never run at once: check_gone() ends one as it sets the
  // other.
  if (drained_at_ && *drained_at_ <= now) {
    drained_at_.reset();
    effects_.add(PipesAreLate{});
  }
  start_again(now);
  if (!grace_at_ || *grace_at_ > now) {
    return;
  }
  grace_at_.reset();
  // Before the signals, so that no finalizer starts when these endings arrive.
  killed_ = true;
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    if (tasks_[number].lives) {
      effects_.add(ProgramWarning{tasks_[number].prefix + " did not end within " +
                                  std::to_string(kStopGrace.count()) + " s; killing it"});
      effects_.add(SignalGroup{.task = number, .signal = SIGKILL});
    }
  }
}

ProgramSupervisor::TimePoint ProgramSupervisor::deadline() const {
  TimePoint next =
      std::min(grace_at_.value_or(TimePoint::max()), drained_at_.value_or(TimePoint::max()));
  for (const ProgramTask& task : tasks_) {
    next = std::min(next, task.start_at.value_or(next));
  }
  return next;
}

int ProgramSupervisor::exit_code() const { return exit_code_.value_or(kDone); }

bool ProgramSupervisor::all_gone() const {
  return std::ranges::none_of(tasks_, &ProgramTask::lives);
}

bool ProgramSupervisor::workers_are_done() const {
  return std::ranges::none_of(tasks_,
                              [](const ProgramTask& task) { return task.is_worker && task.lives; });
}

}  // namespace disttf::roles
