#include "roles/launch/core/supervisor.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "run/outcome.h"
#include "run/task.h"

namespace disttf::roles {

void Supervisor::add(std::string name, RestartPolicy::Part part) {
  policy_.add(part);
  tasks_.push_back({.name = std::move(name), .part = part});
}

// ------------------------------------------------------------------------------- what happens

void Supervisor::started(std::size_t number, TimePoint now) {
  SupervisedTask& task = tasks_.at(number);
  // A task with an ending had a process before, so this start is a restart.
  task.restarts += task.ending ? 1U : 0U;
  task.lives = true;
  task.fault = false;
  task.asked = Asked::kNothing;
  // Pairs with the message of the first failure.
  if (std::exchange(task.fails_to_start, false)) {
    say(task.name + " has been started after failed attempts");
  }
  policy_.started(number, now);
  effects_.add(TaskChanged{number});
}

void Supervisor::could_not_start(std::size_t number, const std::string& why, TimePoint now) {
  SupervisedTask& task = tasks_.at(number);
  // Cancelled by a stop meanwhile; the launch may be waiting for this task alone.
  if (!may_start()) {
    report_if_all_gone();
    return;
  }
  if (const auto delay = policy_.could_not_start(number, now)) {
    // Logs the first failure only.
    if (!std::exchange(task.fails_to_start, true)) {
      say(task.name + " cannot be started: " + why + "; trying again for up to " +
          std::to_string(kStartPatience.count()) + " s");
    }
    // Waiting tasks keep the launch from ending (report_if_all_gone()).
    task.waits = true;
    task.start_at = now + *delay;
    effects_.add(TaskChanged{number});
    return;
  }
  const std::string sentence = task.name + " could not be started for " +
                               std::to_string(kStartPatience.count()) + " s: " + why;
  if (task.part == RestartPolicy::Part::kEvaluator) {
    say(sentence + "; the run goes on without it");
    effects_.add(TaskChanged{number});
  } else {
    say(sentence + "; stopping the others", /*is_error=*/true);
    stop(kError, SIGTERM, now);
  }
  report_if_all_gone();
}

void Supervisor::ended(std::size_t number, Ending ending, TimePoint now) {
  SupervisedTask& task = tasks_.at(number);
  task.lives = false;
  task.frozen = false;
  task.thaw_at.reset();
  task.kill_at.reset();
  // A fault injected by --chaos or a requested end does not count against the restart limits.
  ending.planned |= task.asked != Asked::kNothing || (task.fault && ending.signal != 0);
  task.ending = ending;
  const bool is_done = ending.signal == 0 && ending.exit_code == kDone;
  // A success always counts, even during restart_all(): the run has its result then, and
  // may_start() prevents another start.
  if (ends_ == Ends::kNone || is_done) {  // else restart_all() starts all of them later
    decide(number, now);
  }
}

void Supervisor::decide(std::size_t number, TimePoint now) {
  SupervisedTask& task = tasks_[number];
  const bool was_finished = policy_.finished();
  const RestartPolicy::Decision decision = policy_.ended(number, *task.ending, now);
  const bool stops = decision.action == RestartPolicy::Action::kStop;
  if (!decision.sentence.empty()) {
    say(task.name + " " + decision.sentence, stops);
  }
  if (task.memory_mib && stops) {
    say(task.name + " had a limit of " + std::to_string(*task.memory_mib) +
            " MiB of private memory; to raise it, set --memory, --ps_memory, or mem in an options "
            "file",
        /*is_error=*/true);
  }
  if (decision.action == RestartPolicy::Action::kRestart) {
    // MoveTask is queued now and StartTask only by time(), so the new process listens at the new
    // port.
    if (task.asked == Asked::kReplace) {
      move(number);
    }
    task.waits = true;
    task.start_at = now + decision.delay;
  } else if (stops && task.part == RestartPolicy::Part::kPs) {  // the state is lost with it
    stop_processes(SIGTERM, now);
  } else if (stops) {
    stop_in_order(SIGTERM, now);
  }
  effects_.add(TaskChanged{number});
  if (policy_.finished() && !was_finished) {
    // No task is needed any more.
    cancel_restarts();
    wait_for_leavers(now);
  }
}

void Supervisor::reaped(TimePoint now) {
  if (saving_ && !tasks_[*saving_].lives) {
    // The chief has ended, so no step needs the others any more.
    saving_.reset();
    if (any_lives(true) || any_lives(false)) {
      stop_processes(stop_signal_, now);
    }
  }
  // The chief saves before the others end: a checkpoint needs the parameter servers.
  if (ends_ == Ends::kChief && !any_lives(true)) {
    ends_ = Ends::kOthers;
    end_all(/*chief=*/false, now);
  }
  if (ends_ == Ends::kOthers && !any_lives(false)) {
    ends_ = Ends::kNone;
    effects_.add(AllEnded{});
    // The caller starts all tasks when it drains AllEnded; until then none lives, which must not
    // count as the end of the launch.
    if (may_start()) {
      return;
    }
  }
  report_if_all_gone();
}

void Supervisor::pipe_ended() {
  --pipes_;
  report_if_all_gone();
}

void Supervisor::time(TimePoint now) {
  const auto is_due = [now](std::optional<TimePoint>& at) {
    const bool due = at && *at <= now;
    if (due) {
      at.reset();
    }
    return due;
  };
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    SupervisedTask& task = tasks_[number];
    if (is_due(task.thaw_at)) {
      thaw(number);
    }
    // kill_late() ignores a process that has ended since.
    if (is_due(task.kill_at)) {
      kill_late(number, kStopGrace);
    }
  }
  // One after the other: if one cannot be started, the others are not tried.
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    if (is_due(tasks_[number].start_at)) {
      tasks_[number].waits = false;
      effects_.add(StartTask{number});
      break;
    }
  }
  if (is_due(notify_at_)) {
    notify_trainers();
  }
  if (is_due(grace_at_)) {
    for (std::size_t number = 0; number < tasks_.size(); ++number) {
      kill_late(number, grace_);
    }
  }
}

Supervisor::TimePoint Supervisor::deadline() const {
  TimePoint next =
      std::min(grace_at_.value_or(TimePoint::max()), notify_at_.value_or(TimePoint::max()));
  for (const SupervisedTask& task : tasks_) {
    for (const auto& at : {task.start_at, task.thaw_at, task.kill_at}) {
      next = std::min(next, at.value_or(next));
    }
  }
  return next;
}

void Supervisor::report_if_all_gone() {
  const bool all_gone = std::ranges::all_of(
      tasks_, [](const SupervisedTask& task) { return !task.lives && !task.waits; });
  // Between the stages of restart_all() no process may be alive, although more will start.
  if (ends_ != Ends::kNone || !all_gone) {
    return;
  }
  grace_at_.reset();
  notify_at_.reset();
  // An ended process may leave output in its pipe; the last pipe_ended() reports instead.
  if (pipes_ == 0) {
    effects_.add(AllGone{});
  }
}

// -------------------------------------------------------------------------- what is asked for

void Supervisor::restart(std::size_t number, TimePoint now) {
  SupervisedTask& task = tasks_.at(number);
  if (task.lives) {
    task.asked = Asked::kRestart;
    end_process(number, SIGTERM, now);
  } else {
    // Skips the rest of its back-off.
    task.start_at = now;  // it waits for its restart
  }
}

void Supervisor::replace(std::size_t number, TimePoint now) {
  SupervisedTask& task = tasks_.at(number);
  if (task.lives) {
    task.asked = Asked::kReplace;
    // No grace period: SIGKILL cannot be ignored, and it reaches a stopped process, too.
    signal(number, SIGKILL);
  } else {
    // It has no process, so its address can change at once.
    move(number);
    task.start_at = now;
  }
}

void Supervisor::move(std::size_t number) {
  if (tasks_[number].can_move()) {
    effects_.add(MoveTask{number});
  }
}

void Supervisor::restart_all(TimePoint now) {
  ends_ = Ends::kChief;
  // A task in back-off has no process to end; AllEnded starts it with the others.
  cancel_restarts();
  end_all(/*chief=*/true, now);
  reaped(now);  // there may be no process to wait for
}

void Supervisor::end_all(bool chief, TimePoint now) {
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    if (is_chief(number) == chief && tasks_[number].lives) {
      tasks_[number].asked = Asked::kRestart;
      end_process(number, SIGTERM, now);
    }
  }
}

void Supervisor::end_process(std::size_t number, int with, TimePoint now) {
  // Before SIGCONT: a frozen process must not run on and make steps before it receives the signal.
  signal(number, with);
  // A stopped process receives SIGTERM only after SIGCONT.
  thaw(number);
  tasks_[number].kill_at = now + kStopGrace;
}

bool Supervisor::any_lives(bool chief) const {
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    if (is_chief(number) == chief && tasks_[number].lives) {
      return true;
    }
  }
  return false;
}

void Supervisor::cancel_restarts() {
  for (SupervisedTask& task : tasks_) {
    task.waits = false;
    task.start_at.reset();
  }
}

bool Supervisor::stop(int exit_code, int with, TimePoint now) {
  // First, so that no ending that follows leads to a restart.
  policy_.stop(exit_code);
  return stop_in_order(with, now);
}

void Supervisor::kill_all() {
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    if (tasks_[number].lives) {
      signal(number, SIGKILL);
    }
  }
}

// The number of the chief, if it has a directory to save in.
std::optional<std::size_t> Supervisor::who_can_save() const {
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    if (saves_ && is_chief(number) && tasks_[number].lives) {
      return number;
    }
  }
  return std::nullopt;
}

// Stops the chief first. Ps and workers stay while it saves: a synchronous step under way needs
// them.
bool Supervisor::stop_in_order(int with, TimePoint now) {
  const std::optional<std::size_t> chief = who_can_save();
  if (!chief) {
    stop_processes(with, now);
    return false;
  }
  cancel_restarts();
  saving_ = chief;
  stop_signal_ = with;
  // A chief that hangs while it saves is killed after kStopGrace, which releases the others.
  end_process(*chief, with, now);
  return true;
}

void Supervisor::stop_processes(int with, TimePoint now) {
  cancel_restarts();
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    if (tasks_[number].lives) {
      signal(number, with);
      thaw(number);  // a frozen process would receive the signal only later
    }
  }
  // One grace period for all: nothing depends on the order of these ends.
  start_grace(kStopGrace, now);
}

void Supervisor::start_grace(std::chrono::seconds grace, TimePoint now) {
  grace_ = grace;
  grace_at_ = now + grace;
}

// After the result. The grace period covers the time that the workers need to evaluate it, measured
// by the chief's own evaluation. A program that saves what it has trained has its own limit, which
// its supervisor watches.
void Supervisor::wait_for_leavers(TimePoint now) {
  const std::chrono::seconds grace = finish_grace(now - evaluation_at_.value_or(now));
  if (!programs_end_) {
    start_grace(grace, now);
    return;
  }
  notify_at_ = now + grace;
  if (programs_end_->count() != 0) {
    start_grace(grace + *programs_end_, now);
  }
}

void Supervisor::notify_trainers() {
  for (std::size_t number = 0; number < tasks_.size(); ++number) {
    const RestartPolicy::Part part = tasks_[number].part;
    if (tasks_[number].lives &&
        (part == RestartPolicy::Part::kChief || part == RestartPolicy::Part::kWorker)) {
      signal(number, kRunOverSignal);
    }
  }
}

void Supervisor::kill_late(std::size_t number, std::chrono::seconds grace) {
  if (tasks_[number].lives) {
    say(tasks_[number].name + " did not end within " + std::to_string(grace.count()) +
        " s; killing it");
    signal(number, SIGKILL);
  }
}

void Supervisor::kill_task(std::size_t number) {
  if (tasks_.at(number).lives) {
    signal(number, SIGKILL);
    // ended() then counts the ending as planned. A new process clears it, so a later crash counts.
    tasks_[number].fault = true;
  }
}

void Supervisor::freeze(std::size_t number, std::chrono::milliseconds time, TimePoint now) {
  signal(number, SIGSTOP);
  tasks_.at(number).frozen = true;
  tasks_[number].thaw_at = now + time;
}

void Supervisor::thaw(std::size_t number) {
  if (std::exchange(tasks_[number].frozen, false)) {
    signal(number, SIGCONT);
  }
}

}  // namespace disttf::roles
