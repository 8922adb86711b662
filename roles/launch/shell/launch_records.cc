#include "roles/launch/shell/launch_records.h"

#include <chrono>
#include <utility>

#include "roles/launch/shell/control_verbs.h"
#include "run/monitor/core/record.h"

namespace disttf::roles {
namespace {

double seconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

double now() { return seconds_of(std::chrono::system_clock::now()); }

}  // namespace

LaunchRecords::LaunchRecords(std::function<void(const std::string&)> take)
    : take_(std::move(take)) {}

void LaunchRecords::task(const TaskStatus& status, const SupervisedTask& state) {
  const std::string name = task_name(status.id);
  const auto [found, is_new] = known_.try_emplace(name, status);
  const TaskStatus before = std::exchange(found->second, status);
  // Pages and files get a record only for a change.
  if (!is_new && before.pid == status.pid && before.state == status.state &&
      before.restarts == status.restarts && before.address == status.address) {
    return;
  }
  take_(TaskRecord{.task = name,
                   .address = net::to_string(status.address),
                   .state = name_of(status.state),
                   .pid = status.pid,
                   .restarts = status.restarts,
                   .since = seconds_of(status.since)}
            .to_line(now()));
  // A change of the pid is what identifies a new process: the state may be kRunning before and
  // after.
  const bool has_begun = status.pid > 0 && (is_new || before.pid != status.pid);
  // A process of a known task was replaced or ended: report its end before the start of the next
  // one.
  if (!is_new && before.pid > 0 && before.pid != status.pid && state.ending) {
    const bool is_well = state.ending->signal == 0 && state.ending->exit_code == 0;
    event(!is_well, name, state.ending->signal != 0 ? "killed" : "ended",
          name + " " + to_string(*state.ending) +
              (status.state == TaskState::kWaiting ? "; it will be restarted" : ""));
  }
  if (has_begun) {
    event(false, name, status.restarts == 0 ? "started" : "restarted",
          name + (status.restarts == 0 ? " was started at " : " was restarted at ") +
              net::to_string(status.address));
  }
}

void LaunchRecords::state(const std::string& state) {
  if (std::exchange(state_, state) != state) {
    take_(StateRecord{.state = state}.to_line(now()));
  }
}

void LaunchRecords::asked(const std::string& task, const std::string& sentence) {
  event(false, task, "asked", sentence);
}

void LaunchRecords::event(bool is_warning, const std::string& task, const std::string& what,
                          const std::string& text) {
  take_(EventRecord{.level = is_warning ? EventRecord::Level::kWarning : EventRecord::Level::kInfo,
                    .task = task,
                    .what = what,
                    .text = text}
            .to_line(now()));
}

}  // namespace disttf::roles
