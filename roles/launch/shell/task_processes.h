// The tasks of a launch as processes: forked, reaped, signalled, read. When, the supervisor decides
// (roles/launch/core/supervisor.h); this does what it says.
//
// Knows neither what is printed nor who asks: lines, progress and sentences go to its owner.
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "net/wire/cluster.h"
#include "roles/launch/core/supervisor.h"
#include "roles/launch/shell/launcher.h"
#include "roles/launch/shell/local_task.h"
#include "roles/launch/shell/pipe_lines.h"
#include "roles/process/log.h"

namespace disttf::roles {

struct TaskEvents {
  // A line that a task has printed. `is_result`: on the chief's standard output.
  std::function<void(const LocalTask& task, std::string_view line, bool is_result)> line;
  std::function<void(std::string_view record)> progress;  // roles/process/progress.h
  std::function<void(const LocalTask& task)> changed;     // its process has begun, or ended
  std::function<void(const std::string& sentence, LogLevel level)> say;
  // No process lives, none will be started again, and all that they printed has been read.
  std::function<void()> all_gone;
};

class TaskProcesses {
 public:
  // `context` must outlive the object. Reserves a port for every task. Throws
  // std::system_error.
  // `variables`: what all processes of the run find in their environment, "NAME=value".
  TaskProcesses(asio::io_context& context, const LaunchOptions& options,
                std::vector<std::string> variables, TaskEvents events);

  // A task of which no process can be made is tried again (Supervisor::could_not_start()). Throws
  // std::system_error where a port cannot be had.
  void start_all();
  // To be called after SIGCHLD.
  void reap();

  // As the supervisor's.
  void restart(LocalTask& task);
  void replace(LocalTask& task);
  bool stop(int exit_code, int signal);
  void kill_all();
  void kill_task(LocalTask& task);
  void freeze(LocalTask& task, std::chrono::milliseconds time);

  // Starts more workers, with lists that name them, beside what runs. Throws std::system_error.
  void add_workers(std::size_t count);
  // What processes that are started from now on get. Counts are left alone.
  void set_options(const LaunchOptions& options);
  // Ends all processes, the chief's first, and starts all tasks again with these options, counts
  // included, whose lists then name all; then `done`, also where the run ends meanwhile. REQUIRES:
  // may_start().
  void restart_all(LaunchOptions options, std::function<void()> done);

  // Who tells or asks the supervisor something is to call act() afterwards, which does what it
  // wants done.
  [[nodiscard]] Supervisor& supervisor() noexcept { return supervisor_; }
  void act();

  // In the order in which they came: first ps, chief, workers.
  [[nodiscard]] const LocalTasks& tasks() const { return tasks_; }
  // nullptr: there is none of that name.
  [[nodiscard]] LocalTask* find(const net::TaskId& id) const {
    const auto task = std::ranges::find(tasks_, id, [](const auto& each) { return each->id; });
    return task == tasks_.end() ? nullptr : task->get();
  }
  [[nodiscard]] const SupervisedTask& state_of(const LocalTask& task) const {
    return supervisor_.tasks()[task.number];
  }
  [[nodiscard]] bool may_start() const { return supervisor_.may_start(); }
  [[nodiscard]] const RestartPolicy& policy() const { return supervisor_.policy(); }
  [[nodiscard]] const LaunchOptions& options() const { return options_; }

 private:
  LocalTask& add_task(const net::TaskId& id);
  void add_missing_tasks();
  void try_to_start(LocalTask& task, int listen_fd);
  void start(LocalTask& task, int listen_fd);
  void tell_limits();
  [[nodiscard]] const TaskLimits& limits_of(const LocalTask& task) const;
  [[nodiscard]] std::vector<int> cpus_of(LocalTask& task);
  asio::awaitable<void> read(data::FileDescriptor pipe, LineHandler handler);
  void carry_out(const StartTask& order);
  void carry_out(const SignalTask& order);
  void carry_out(const MoveTask& order);
  void carry_out(const TaskChanged& order);
  void carry_out(const SayLine& order);
  void carry_out(const AllEnded& order);
  void carry_out(const AllGone& order);

  asio::io_context& context_;
  LaunchOptions options_;
  const std::vector<std::string> variables_;  // of the run, also when all start again
  TaskEvents events_;
  asio::steady_timer timer_;  // at the supervisor's deadline, if there is one
  std::vector<int> cpus_;     // those that this process may use
  std::size_t next_cpu_ = 0;
  Supervisor supervisor_;
  LocalTasks tasks_;      // in the supervisor's order
  LaunchOptions wanted_;  // by restart_all()
  std::function<void()> all_restarted_;
};

}  // namespace disttf::roles
