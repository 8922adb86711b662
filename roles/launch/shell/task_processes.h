// The tasks of a launch as processes: forked, reaped, signalled, read. Carries out the decisions of
// the supervisor (roles/launch/core/supervisor.h).
//
// Passes lines, progress and messages to its owner without interpreting them. Everything runs on
// the one thread that runs the io_context.
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
#include "roles/launch/shell/child_output.h"
#include "roles/launch/shell/launcher.h"
#include "roles/launch/shell/local_task.h"
#include "run/process/log.h"

namespace disttf::roles {

struct TaskEvents {
  // A task has printed a line. `is_result`: on the chief's standard output.
  std::function<void(const LocalTask& task, std::string_view line, bool is_result)> line;
  // The process `writer` of the chief or of the evaluator has written a record
  // (run/process/progress.h). The process may have ended, or been replaced, by now.
  std::function<void(pid_t writer, std::string_view record)> progress;
  std::function<void(const LocalTask& task)> changed;  // its process has started or ended
  std::function<void(const std::string& sentence, LogLevel level)> say;
  // No process lives, none will be started again, and all output has been read.
  std::function<void()> all_gone;
};

class TaskProcesses {
 public:
  // `context` must outlive the object. Reserves a port for every task. Throws std::system_error.
  // `variables`: environment variables of all processes of the run, "NAME=value".
  TaskProcesses(asio::io_context& context, const LaunchOptions& options,
                std::vector<std::string> variables, TaskEvents events);

  // Retries tasks whose process cannot be created (Supervisor::could_not_start()). Throws
  // std::system_error if a port is unavailable.
  void start_all();
  // To be called after SIGCHLD.
  void reap();

  // As in Supervisor.
  void restart(LocalTask& task);
  void replace(LocalTask& task);
  bool stop(int exit_code, int signal);
  void kill_all();
  void kill_task(LocalTask& task);
  void freeze(LocalTask& task, std::chrono::milliseconds time);

  // Starts more workers beside the running tasks, with lists that name them. Throws
  // std::system_error.
  void add_workers(std::size_t count);
  // Sets the options of processes that start from now on. Does not change counts.
  void set_options(const LaunchOptions& options);
  // Ends all processes, the chief's first, and starts all tasks again with these options, including
  // counts and complete lists; then calls `done`, also if the run ends meanwhile. REQUIRES:
  // may_start().
  void restart_all(LaunchOptions options, std::function<void()> done);

  // After calls of the supervisor the caller must call act(), which carries out its effects.
  [[nodiscard]] Supervisor& supervisor() noexcept { return supervisor_; }
  void act();

  // In the order of their creation: first ps, chief, workers.
  [[nodiscard]] const LocalTasks& tasks() const { return tasks_; }
  // nullptr: no task has that name.
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
  void report_limits();
  [[nodiscard]] const TaskLimits& limits_of(const LocalTask& task) const;
  [[nodiscard]] std::vector<int> cpus_of(LocalTask& task);
  asio::awaitable<void> read(data::FileDescriptor pipe, LineHandler handler);
  void carry_out(const StartTask& effect);
  void carry_out(const SignalTask& effect);
  static void signal_processes(LocalTask& task, int signal);
  void carry_out(const MoveTask& effect);
  void carry_out(const TaskChanged& effect);
  void carry_out(const SayLine& effect);
  void carry_out(const AllEnded& effect);
  void carry_out(const AllGone& effect);

  asio::io_context& context_;
  LaunchOptions options_;
  const std::vector<std::string> variables_;  // of the run, also after restart_all()
  TaskEvents events_;
  asio::steady_timer timer_;  // at the supervisor's deadline, if there is one
  std::vector<int> cpus_;     // the CPUs that this process may use
  std::size_t next_cpu_ = 0;
  Supervisor supervisor_;
  LocalTasks tasks_;      // in the supervisor's order
  LaunchOptions wanted_;  // the argument of restart_all()
  std::function<void()> all_restarted_;
};

}  // namespace disttf::roles
