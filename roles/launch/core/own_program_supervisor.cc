#include "roles/launch/core/own_program_supervisor.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "run/outcome.h"

namespace disttf::roles {
namespace {

// The delays before the second start after a failed one, and the longest one.
constexpr std::chrono::milliseconds kFirstProgramDelay{250};
constexpr std::chrono::milliseconds kLongestProgramDelay{5000};
// The exit code of a child whose file the kernel does not run (child_process.h).
constexpr int kNotExecuted = 126;

// Why the run has lost its program, which has ended by itself. `has_run`: it has made a step.
std::string early_exit(const Ending& ending, bool has_run) {
  const std::string sentence =
      "the program exited with " + std::to_string(ending.exit_code) + " before the run was over";
  if (ending.exit_code == kDone) {
    return sentence + ": it must take part until its loop ends";
  }
  return ending.exit_code == kNotExecuted && !has_run
             ? sentence + ": its file cannot be executed, or it chose this code"
             : sentence + "; its last lines have the reason";
}

// What often leads to this signal, as the end of a sentence.
const char* hint_of(int signal) {
  return signal == SIGSEGV || signal == SIGBUS
             ? "; parameters are read-only for it: a write there is a segmentation fault"
             : "";
}

// Whether a process's own instructions lead to this signal.
bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
         signal == SIGABRT;
}

// Why no further program is started.
std::string too_many_deaths(const Ending& ending, bool is_hung) {
  return "the program " + (is_hung ? "hung" : to_string(ending)) + " " +
         std::to_string(kMostProgramDeaths) + " times without a step" +
         (is_hung ? "; see --program_timeout_secs" : hint_of(ending.signal));
}

std::string too_many_faults(const Ending& ending) {
  return "the program " + to_string(ending) + " " + std::to_string(kMostFaults) +
         " times, each time within its first " + std::to_string(kSettledSteps) + " steps" +
         hint_of(ending.signal);
}

}  // namespace

void OwnProgramSupervisor::begin() {
  task_lives_ = true;
  effects_.add(StartOwnTask{});
  start_program();
}

void OwnProgramSupervisor::start_program() {
  active_ = {.id = ++last_id_};
  effects_.add(StartOwnProgram{.id = active_.id});
}

void OwnProgramSupervisor::start_spare() {
  spare_ = ++last_id_;
  is_spare_ready_ = false;
  effects_.add(StartOwnProgram{.id = *spare_, .is_spare = true});
}

void OwnProgramSupervisor::program_started(ProgramId id) {
  fails_to_start_since_.reset();
  if (id == active_.id) {
    active_.number = ++last_number_;
    effects_.add(HandOverProgram{.id = id, .number = active_.number});
  }
}

void OwnProgramSupervisor::could_not_start(ProgramId id, const std::string& why, TimePoint now) {
  if (spare_ == id) {
    spare_ended("could not be started: " + why, now);
    return;
  }
  active_ = {};
  if (!may_start()) {
    check_end();
    return;
  }
  if (!fails_to_start_since_) {
    fails_to_start_since_ = now;
    say("the program cannot be started: " + why + "; trying again for up to " +
        std::to_string(kStartPatience.count()) + " s");
  }
  if (now - *fails_to_start_since_ >= kStartPatience) {
    fail("the program could not be started: " + why, now);
  } else {
    start_at_ = now + next_delay();
  }
}

std::chrono::milliseconds OwnProgramSupervisor::next_delay() {
  const std::chrono::milliseconds delay = delay_;
  delay_ = std::clamp(2 * delay_, kFirstProgramDelay, kLongestProgramDelay);
  return delay;
}

// ------------------------------------------------------------------------------------ endings

void OwnProgramSupervisor::program_ended(ProgramId id, const Ending& ending, TimePoint now) {
  if (spare_ == id) {
    spare_ended(to_string(ending), now);
  } else if (active_.id == id) {
    active_ended(ending, now);
  }
}

void OwnProgramSupervisor::active_ended(const Ending& ending, TimePoint now) {
  const Active ended = std::exchange(active_, {});
  kill_at_.reset();
  slow_at_.reset();
  end_at_.reset();
  if (task_lives_) {
    effects_.add(TellTask{{.kind = ProgramKind::kEnded,
                           .number = static_cast<std::uint32_t>(ending.exit_code),
                           .step = ended.number,
                           .count = static_cast<std::uint64_t>(ending.signal)}});
  }
  if (is_released_) {
    if (!ended.is_signalled) {
      ended_after_the_run(ending);
    }
  } else if (may_start() && (ending.signal != 0 || ended.is_signalled)) {
    restart(ending, ended, now);
  } else if (may_start()) {
    // The task may know more: the program may have sent it the reason.
    exited_ = ending;
    exited_has_run_ = ended.is_steady;
    fail_at_ = now + kTaskReport;
  }
  check_end();
}

// Replaces a program that was killed.
void OwnProgramSupervisor::restart(const Ending& ending, const Active& ended, TimePoint now) {
  count_death(ending, ended);
  if (faults_ >= kMostFaults) {
    fail(too_many_faults(ending), now);
    return;
  }
  if (deaths_ >= kMostProgramDeaths) {
    fail(too_many_deaths(ending, ended.is_hung), now);
    return;
  }
  const std::string sentence = "the program " + to_string(ending);
  const char* const hint = ended.is_signalled ? "" : hint_of(ending.signal);
  if (spare_) {
    say(sentence +
        (is_spare_ready_ ? "; the spare takes over" : "; the spare, still starting, takes over") +
        hint);
    active_.id = *std::exchange(spare_, {});
    spare_deaths_ = 0;
    program_started(active_.id);
    return;
  }
  say(sentence + "; starting it again" + hint);
  start_at_ = now + next_delay();
  this->time(now);  // most often at once
}

void OwnProgramSupervisor::count_death(const Ending& ending, const Active& ended) {
  deaths_ += ended.is_steady ? 0 : 1;
  if (is_fault(ending.signal) && !ended.is_settled && !ended.is_signalled) {
    faults_ = ending.signal == fault_ ? faults_ + 1 : 1;
    fault_ = ending.signal;
  }
}

void OwnProgramSupervisor::ended_after_the_run(const Ending& ending) {
  if (ending.signal != 0 || ending.exit_code != kDone) {
    has_failed_ = true;
    say("the program " + to_string(ending) + " after the run was over", /*is_error=*/true);
  }
}

void OwnProgramSupervisor::spare_ended(const std::string& how, TimePoint now) {
  spare_.reset();
  if (!may_start()) {
    check_end();
    return;
  }
  ++spare_deaths_;
  if (spare_deaths_ < kMostSpareDeaths) {
    spare_at_ = now + kSpareDelay;
  } else {
    say("the spare of the program " + how + ", " + std::to_string(kMostSpareDeaths) +
        " times before it was used; going on without one");
  }
}

void OwnProgramSupervisor::task_ended(const Ending& ending, TimePoint now) {
  task_lives_ = false;
  task_ending_ = ending;
  start_nothing_more();
  const bool is_done = ending.signal == 0 && ending.exit_code == kDone;
  // A task that has failed has said why, also if the program's exit was the reason.
  if (fail_at_ && is_done) {
    ended_after_the_run(*exited_);
  }
  fail_at_.reset();
  task_kill_at_.reset();
  // After a run that has its result the program may still save what it wants.
  if (active_.id != 0 && !(is_released_ && is_done && !is_stopping_ && !has_failed_)) {
    end_program(SIGTERM, now);
  }
  check_end();
}

// ------------------------------------------------------------------------------------ requests

bool OwnProgramSupervisor::is_active(std::uint64_t number) const {
  return active_.id != 0 && (number == 0 || active_.number == number);
}

void OwnProgramSupervisor::message(const ProgramMessage& message, TimePoint now) {
  if (message.kind == ProgramKind::kSteady) {
    take_steady(message.step);
  } else if (message.kind == ProgramKind::kRelease) {
    release(message, now);
    // An answer to an earlier program concerns none that lives.
  } else if (message.kind == ProgramKind::kRestart && is_active(message.step) && may_start() &&
             !active_.is_signalled) {
    constexpr std::uint32_t kMostSignals = 64;
    const bool is_signal = message.number > 0 && message.number <= kMostSignals;
    active_.is_hung = message.number == SIGABRT;
    end_program(is_signal ? static_cast<int>(message.number) : SIGABRT, now);
  }
}

void OwnProgramSupervisor::take_steady(std::uint64_t number) {
  if (!is_active(number)) {
    return;
  }
  if (std::exchange(active_.is_steady, true)) {
    active_.is_settled = true;
    faults_ = 0;
  }
  deaths_ = 0;
  delay_ = {};
  // Not before: the first program has the machine for itself while it starts.
  if (rules_.has_spare && !spare_ && !spare_at_ && spare_deaths_ < kMostSpareDeaths &&
      may_start()) {
    start_spare();
  }
}

void OwnProgramSupervisor::release(const ProgramMessage& message, TimePoint now) {
  if (is_released_) {
    return;
  }
  is_released_ = true;
  start_nothing_more();
  // The program has received END, and exited, before this message came.
  if (fail_at_) {
    fail_at_.reset();
    ended_after_the_run(*exited_);
  } else if (message.number != 0 || !is_active(message.step)) {
    // It was killed before it could receive END, and the task has not noticed.
    say("the run ended while the program was started again: what follows its loop was not run");
    // By itself the next one would exit with an error, as a program does that loses its task.
    if (active_.id != 0) {
      end_program(SIGTERM, now);
    }
  } else {
    slow_at_ = now + kLongEnd;
    end_at_ =
        rules_.end_timeout.count() == 0 ? std::nullopt : std::optional(now + rules_.end_timeout);
  }
}

void OwnProgramSupervisor::stop(int signal, TimePoint now) {
  is_stopping_ = true;
  start_nothing_more();
  if (task_lives_) {
    // The program ends after the task, which may need it while it ends.
    effects_.add(SignalOwnTask{.signal = signal});
    end_task_within(kStoppedTaskGrace, now);
  } else if (active_.id != 0) {
    end_program(SIGTERM, now);
  }
}

void OwnProgramSupervisor::run_over(TimePoint now) {
  if (task_lives_ && !is_released_ && !is_stopping_) {
    say("the run ended before this task could rejoin it: what follows the program's loop was not "
        "run");
    stop(SIGTERM, now);
  }
}

bool OwnProgramSupervisor::may_start() const {
  return task_lives_ && !is_released_ && !is_stopping_ && !has_failed_ && !fail_at_;
}

// Cancels further starts, and ends the spare, which is not used any more.
void OwnProgramSupervisor::start_nothing_more() {
  start_at_.reset();
  spare_at_.reset();
  if (spare_) {
    effects_.add(SignalOwnProgram{.id = *spare_, .signal = SIGKILL});
  }
}

void OwnProgramSupervisor::end_program(int signal, TimePoint now) {
  active_.is_signalled = true;
  effects_.add(SignalOwnProgram{.id = active_.id, .signal = signal});
  kill_at_ = now + kStopGrace;
}

void OwnProgramSupervisor::fail(const std::string& sentence, TimePoint now) {
  has_failed_ = true;
  say(sentence, /*is_error=*/true);
  start_nothing_more();
  effects_.add(SignalOwnTask{.signal = SIGTERM});
  end_task_within(kTaskGrace, now);
}

// A limit that runs already stays: further signals do not extend it.
void OwnProgramSupervisor::end_task_within(std::chrono::seconds limit, TimePoint now) {
  task_kill_at_ = std::min(task_kill_at_.value_or(TimePoint::max()), now + limit);
}

void OwnProgramSupervisor::check_end() {
  if (task_lives_ || active_.id != 0 || spare_) {
    return;
  }
  const bool is_killed = !has_failed_ && task_ending_->signal != 0;
  effects_.add(SupervisorEnded{.exit_code = has_failed_ ? kError
                                            : is_killed ? kDone
                                                        : task_ending_->exit_code,
                               .signal = is_killed ? task_ending_->signal : 0});
}

// ------------------------------------------------------------------------------------ time

void OwnProgramSupervisor::end_late_program(TimePoint now) {
  has_failed_ = true;
  say("the program did not end within " + std::to_string(rules_.end_timeout.count()) +
          " s after the run was over; ending it",
      /*is_error=*/true);
  end_program(SIGTERM, now);
}

void OwnProgramSupervisor::time(TimePoint now) {
  const auto is_due = [now](std::optional<TimePoint>& at) {
    return at && *at <= now && (at.reset(), true);
  };
  if (is_due(start_at_)) {
    start_program();
  }
  // A program that has not made a step yet starts one then.
  if (is_due(spare_at_) && active_.is_steady) {
    start_spare();
  }
  if (is_due(kill_at_)) {
    effects_.add(SignalOwnProgram{.id = active_.id, .signal = SIGKILL});
  }
  if (is_due(slow_at_)) {
    say("the program has not ended " + std::to_string(kLongEnd.count()) +
        " s after the run was over; waiting for it" +
        (end_at_ ? " for up to " + std::to_string(rules_.end_timeout.count()) + " s" : ""));
  }
  if (is_due(end_at_)) {
    end_late_program(now);
  }
  if (is_due(fail_at_)) {
    fail(early_exit(*exited_, exited_has_run_), now);
  }
  if (is_due(task_kill_at_)) {
    has_failed_ = true;  // not the signal, which would mean a restart
    say("the task did not end in time; killing it");
    effects_.add(SignalOwnTask{.signal = SIGKILL});
  }
}

void OwnProgramSupervisor::forgive(TimePoint::duration missed) {
  for (auto* const at :
       {&start_at_, &spare_at_, &kill_at_, &slow_at_, &end_at_, &fail_at_, &task_kill_at_}) {
    if (*at) {
      **at += missed;
    }
  }
}

OwnProgramSupervisor::TimePoint OwnProgramSupervisor::deadline() const {
  TimePoint next = TimePoint::max();
  for (const auto& at :
       {start_at_, spare_at_, kill_at_, slow_at_, end_at_, fail_at_, task_kill_at_}) {
    next = std::min(next, at.value_or(next));
  }
  return next;
}

}  // namespace disttf::roles
