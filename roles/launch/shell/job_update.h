// An update under way: new workers, a roll through the tasks (roles/launch/core/rolling_update.h),
// or a start of all of them again.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <string>

#include "roles/launch/core/rolling_update.h"
#include "roles/launch/shell/task_processes.h"
#include "roles/launch/shell/update_plan.h"
#include "roles/process/progress.h"

namespace disttf::roles {

class JobUpdate {
 public:
  // All must outlive the object. `say`: one sentence for the log.
  JobUpdate(asio::io_context& context, TaskProcesses& processes,
            std::function<void(const std::string&)> say);

  [[nodiscard]] bool is_under_way() const noexcept { return restarts_all_ || roll_.is_under_way(); }
  // Begins, and returns a sentence that says what is done. Throws std::system_error.
  // REQUIRES: !is_under_way(), and plan.changes is not empty.
  std::string begin(const LaunchOptions& wanted, const UpdatePlan& plan);

  // To be told of everything that an update may wait for.
  void on_progress(const Progress& progress);
  void on_change();

 private:
  void on_all_restarted();
  void act(const std::optional<std::string>& sentence);

  TaskProcesses& processes_;
  std::function<void(const std::string&)> say_;
  asio::steady_timer timer_;  // at the roll's deadline, while there is one
  RollingUpdate roll_;
  bool restarts_all_ = false;
};

}  // namespace disttf::roles
