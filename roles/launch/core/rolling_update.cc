#include "roles/launch/core/rolling_update.h"

namespace disttf::roles {
namespace {

// How long a task may take to return and the run to continue: the task loads its data, and perhaps
// a checkpoint.
constexpr std::chrono::seconds kReadyPatience{60};

}  // namespace

void RollingUpdate::begin(TimePoint now) {
  if (!restart_next(0, now)) {
    task_ = supervisor_.tasks().size();  // go_on() finds no task to wait for
    limit_ = now;
  }
}

std::optional<std::string> RollingUpdate::stepped(std::uint64_t step, TimePoint now) {
  last_step_ = step;
  // The loss of a ps rolls the run back.
  if (!first_step_ || step < *first_step_) {
    first_step_ = step;
  }
  return go_on(now);
}

std::optional<std::string> RollingUpdate::go_on(TimePoint now) {
  while (task_ && *task_ < supervisor_.tasks().size()) {
    const Return state = come_back(now);
    if (state == Return::kAwaited) {
      return std::nullopt;
    }
    if (state == Return::kLate) {
      const std::size_t task = *task_;
      // Later tasks keep running; they get the settings at their next start.
      task_.reset();
      if (!supervisor_.may_start()) {
        return std::nullopt;
      }
      return "update: the run did not resume within " + std::to_string(kReadyPatience.count()) +
             " s of the restart of " + supervisor_.tasks()[task].name +
             "; later tasks get the new settings when they restart";
    }
    if (!restart_next(*task_ + 1, now)) {
      break;
    }
  }
  if (!task_) {
    return std::nullopt;
  }
  // No task is left to restart, or the run is ending.
  task_.reset();
  return supervisor_.may_start() ? std::optional<std::string>("update: done") : std::nullopt;
}

// Restarts the next task; false: none is left.
bool RollingUpdate::restart_next(std::size_t from, TimePoint now) {
  for (std::size_t each = from; each < supervisor_.tasks().size(); ++each) {
    const SupervisedTask& task = supervisor_.tasks()[each];
    if (supervisor_.may_start() && (task.lives || task.waits)) {
      task_ = each;
      restarts_ = task.restarts;
      limit_ = now + kReadyPatience;
      // Steps made before the restart prove nothing.
      first_step_.reset();
      supervisor_.restart(each, now);
      return true;
    }
  }
  return false;
}

// kBack: the task's next process lives and the run has continued with it. A synchronous step begun
// before the restart may still complete without the task, but only one: after two it has taken
// part.
RollingUpdate::Return RollingUpdate::come_back(TimePoint now) {
  if (!supervisor_.may_start() || now >= limit_) {
    return Return::kLate;
  }
  const SupervisedTask& task = supervisor_.tasks()[*task_];
  if (!task.lives || task.restarts <= restarts_) {
    first_step_.reset();
    return Return::kAwaited;
  }
  return first_step_ && last_step_ >= *first_step_ + 2 ? Return::kBack : Return::kAwaited;
}

}  // namespace disttf::roles
