#include "roles/launch/core/restart_policy.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "run/outcome.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;

// Bounds of the delays before a restart: the first is too short to notice; the longest is far below
// the default timeouts of the tasks that wait for this one.
constexpr milliseconds kFirstDelay{100};
constexpr milliseconds kLongestDelay{5000};
// A task that has lived this long is not in a crash loop: twice the longest delay.
constexpr milliseconds kLongLife{10'000};

// Exit codes from here on ask for a restart, as in orchestrators.
constexpr int kFirstRetryable = 128;

bool may_be_mended(const Ending& ending) {
  return ending.signal != 0 || ending.lost || ending.exit_code >= kFirstRetryable;
}

}  // namespace

Ending ending_of(int status, bool fault) {
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .planned = fault && WIFSIGNALED(status)};
}

std::string to_string(const Ending& ending) {
  if (ending.signal != 0) {
    return "was killed by signal " + std::to_string(ending.signal) + " (" +
           strsignal(ending.signal) + ")";
  }
  if (ending.lost) {
    return "was lost";
  }
  return "ended with exit code " + std::to_string(ending.exit_code);
}

RestartPolicy::RestartPolicy(const RestartOptions& options, const std::vector<Part>& parts,
                             std::mt19937_64 engine)
    : options_(options), engine_(engine) {
  // Without restarts every failure that a restart could fix takes the path of a used-up budget.
  if (!options_.on_failure) {
    options_.max_restarts = 0;
  }
  for (const Part part : parts) {
    add(part);
  }
}

void RestartPolicy::add(Part part) { tasks_.push_back({.part = part, .ceiling = kFirstDelay}); }

void RestartPolicy::started(std::size_t task, TimePoint now) {
  tasks_.at(task).started = now;
  tasks_[task].fails_to_start_since.reset();
}

std::optional<milliseconds> RestartPolicy::could_not_start(std::size_t task, TimePoint now) {
  TaskState& state = tasks_.at(task);
  const TimePoint since = state.fails_to_start_since.value_or(now);
  // `fails_to_start_since` stays set until started(): the attempts of one shortage share one limit.
  if (now - since >= kStartPatience) {
    return std::nullopt;
  }
  state.fails_to_start_since = since;
  // Failed starts and crashes share the back-off.
  const milliseconds ceiling = state.ceiling;
  state.ceiling = std::min(2 * ceiling, kLongestDelay);
  return jittered(ceiling);
}

RestartPolicy::Decision RestartPolicy::ended(std::size_t task, const Ending& ending,
                                             TimePoint now) {
  TaskState& state = tasks_.at(task);
  if (ending.signal == 0 && !ending.lost && ending.exit_code == kDone) {
    // An evaluator may get the result before the run reports it.
    if (!exit_code_ && state.part != Part::kEvaluator) {
      finished_ = true;
      exit_code_ = kDone;
    }
    return {};
  }
  // A finished run ignores later failures, except a chief's own that a restart cannot fix.
  if (finished_ && (state.part != Part::kChief || may_be_mended(ending))) {
    return {.sentence = to_string(ending) + "; the run was over already"};
  }
  if (exit_code_ && !finished_) {
    return {};  // stopped because another task failed, or by a signal
  }
  // No count and no back-off: an injected fault or a request is not a sign of a crash loop.
  if (ending.planned) {
    return {.action = Action::kRestart,
            .delay = jittered(kFirstDelay),
            .sentence = to_string(ending) + " as planned; starting it again"};
  }
  if (state.part == Part::kEvaluator) {
    return evaluator_ended(state, ending, now);
  }
  if (may_be_mended(ending) && restarts_ < options_.max_restarts) {
    return restart(state, ending, restarts_, "restarts", now);
  }
  // Other failures repeat: a usage error is the same at every start.
  const std::string tries = may_be_mended(ending) && restarts_ > 0
                                ? " after " + std::to_string(restarts_) + " of " +
                                      std::to_string(options_.max_restarts) + " restarts"
                                : "";
  // A process killed by a signal has no exit code; kLostPeers asks an outer orchestrator for a
  // restart of the launch.
  exit_code_ = ending.signal != 0 || ending.lost ? static_cast<int>(kLostPeers) : ending.exit_code;
  return {.action = Action::kStop, .sentence = to_string(ending) + tries + "; stopping the others"};
}

RestartPolicy::Decision RestartPolicy::evaluator_ended(TaskState& task, const Ending& ending,
                                                       TimePoint now) {
  if (may_be_mended(ending) && evaluator_restarts_ < options_.max_restarts) {
    return restart(task, ending, evaluator_restarts_, "restarts of the evaluator", now);
  }
  // No other task waits for an evaluator, so its failure decides nothing.
  return {.sentence = to_string(ending) + "; the run goes on without it"};
}

RestartPolicy::Decision RestartPolicy::restart(TaskState& task, const Ending& ending,
                                               std::uint64_t& restarts, const char* of,
                                               TimePoint now) {
  ++restarts;
  return {.action = Action::kRestart,
          .delay = next_delay(task, now),
          .sentence = to_string(ending) + "; starting it again (" + std::to_string(restarts) +
                      " of " + std::to_string(options_.max_restarts) + " " + of + ")"};
}

void RestartPolicy::stop(int exit_code) {
  if (!exit_code_) {
    exit_code_ = exit_code;
  }
}

// Exponential back-off with jitter over the upper half: tasks that died together restart apart, and
// none restarts in a tight loop.
milliseconds RestartPolicy::next_delay(TaskState& task, TimePoint now) {
  if (now - task.started >= kLongLife) {
    task.ceiling = kFirstDelay;
  }
  const milliseconds ceiling = task.ceiling;
  task.ceiling = std::min(2 * ceiling, kLongestDelay);
  return jittered(ceiling);
}

milliseconds RestartPolicy::jittered(milliseconds ceiling) {
  std::uniform_int_distribution<milliseconds::rep> delay(ceiling.count() / 2, ceiling.count());
  return milliseconds(delay(engine_));
}

}  // namespace disttf::roles
