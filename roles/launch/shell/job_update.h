// An update under way: new workers, a roll through the tasks, or a start of all of them again.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "roles/launch/shell/supervisor.h"
#include "roles/launch/shell/update_plan.h"
#include "roles/process/progress.h"

namespace disttf::roles {

class JobUpdate {
 public:
  // All must outlive the object. `say`: one sentence for the log.
  JobUpdate(asio::io_context& context, Supervisor& supervisor,
            std::function<void(const std::string&)> say);

  [[nodiscard]] bool is_under_way() const noexcept { return is_under_way_; }
  // Begins, and returns a sentence that says what is done. Throws std::system_error.
  // REQUIRES: !is_under_way(), and plan.changes is not empty.
  std::string begin(const LaunchOptions& wanted, const UpdatePlan& plan);

  // To be told of everything that an update may wait for.
  void on_progress(const Progress& progress);
  void on_change() { wake_.cancel(); }

 private:
  void end();
  asio::awaitable<void> roll();
  asio::awaitable<void> restart_all(LaunchOptions wanted);
  asio::awaitable<bool> comes_back(const LocalTask& task, std::uint64_t restarts);

  Supervisor& supervisor_;
  std::function<void(const std::string&)> say_;
  asio::steady_timer wake_;
  bool is_under_way_ = false;
  std::optional<std::uint64_t> first_step_;  // seen since the task that is waited for came back
  std::uint64_t last_step_ = 0;
};

}  // namespace disttf::roles
