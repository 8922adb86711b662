// An update of a launch: what it changes, and its progress.
//
// An update in progress: new workers, a rolling restart of the tasks
// (roles/launch/core/rolling_update.h), or a restart of all.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roles/launch/core/rolling_update.h"
#include "roles/launch/shell/launcher.h"
#include "roles/launch/shell/task_processes.h"
#include "run/process/progress.h"

namespace disttf::roles {

// What an update changes in a running launch, and how: compares the present options with the wanted
// ones.
//
// Pure functions.
struct UpdatePlan {
  // "--log_every: 500 -> 100"; a missing flag is shown as "default".
  std::vector<std::string> changes;
  std::size_t new_workers = 0;  // that join the run
  bool rolls = false;           // settings of tasks: restarts one after the other
  bool restarts = false;        // restarts all tasks, from the newest checkpoint
};

// Throws JobRefusal with a sentence that names what cannot change, and why.
[[nodiscard]] UpdatePlan plan_update(const LaunchOptions& now, const LaunchOptions& wanted);

// Whether an update may change that flag of the tasks, such as "log_every".
[[nodiscard]] bool is_changed_by_updates(std::string_view flag) noexcept;

// The value of "--name=value" among the arguments; empty: none.
[[nodiscard]] std::string argument_value(const std::vector<std::string>& arguments,
                                         const std::string& name);

class JobUpdate {
 public:
  // All arguments must outlive the object. `say` logs a sentence.
  JobUpdate(asio::io_context& context, TaskProcesses& processes,
            std::function<void(const std::string&)> say);

  [[nodiscard]] bool is_under_way() const noexcept { return restarts_all_ || roll_.is_under_way(); }
  // Begins, and returns a sentence about what is done. Throws std::system_error.
  // REQUIRES: !is_under_way(), and plan.changes is not empty.
  std::string begin(const LaunchOptions& wanted, const UpdatePlan& plan);

  // The caller reports every event that an update may wait for.
  void on_progress(const Progress& progress);
  void on_change();

 private:
  void on_all_restarted();
  void act(const std::optional<std::string>& sentence);

  TaskProcesses& processes_;
  std::function<void(const std::string&)> say_;
  asio::steady_timer timer_;  // at the roll's deadline, if there is one
  RollingUpdate roll_;
  bool restarts_all_ = false;
};

}  // namespace disttf::roles
