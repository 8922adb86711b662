// The tasks of a launch as processes: started, reaped, started again as the restart policy says,
// stopped.
//
// Knows neither what is printed nor who asks: lines, progress and sentences go to its owner.
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "net/wire/cluster.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/launch/shell/launcher.h"
#include "roles/launch/shell/local_task.h"
#include "roles/launch/shell/pipe_lines.h"
#include "roles/process/log.h"

namespace disttf::roles {

struct SupervisorEvents {
  // A line that a task has printed. `is_result`: on the chief's standard output.
  std::function<void(const LocalTask& task, std::string_view line, bool is_result)> line;
  std::function<void(std::string_view record)> progress;  // roles/process/progress.h
  std::function<void(const LocalTask& task)> changed;     // its process has begun, or ended
  std::function<void(const std::string& sentence, LogLevel level)> say;
  // No process lives, none will be started again, and all that they printed has been read.
  std::function<void()> all_gone;
};

class Supervisor {
 public:
  // `context` must outlive the object. Reserves a port for every task. Throws
  // std::system_error.
  Supervisor(asio::io_context& context, const LaunchOptions& options, SupervisorEvents events);

  // Throws std::system_error.
  void start_all();
  // To be called after SIGCHLD.
  void reap();

  // SIGTERM, SIGKILL where that does not help, and a new process, at once and at the same address.
  // REQUIRES: a process lives, or waits to be started; and may_start().
  void restart(LocalTask& task);
  // SIGKILL, and a new process; of a worker that is not the chief, at a new address. REQUIRES as
  // above.
  void replace(LocalTask& task);
  // Starts more workers, with lists that name them, beside what runs. Throws std::system_error.
  void add_workers(std::size_t count);
  // What processes that are started from now on get. Counts are left alone.
  void set_options(const LaunchOptions& options);
  // Ends all processes, the chief's first, so that it can save what is, and starts all tasks again
  // with these options, counts included, whose lists then name all. REQUIRES: may_start().
  asio::awaitable<void> restart_all(LaunchOptions options);
  // Whether the run's end is still open.
  [[nodiscard]] bool may_start() const { return !policy_.exit_code(); }
  // Ends the run: nothing is started again, and every process gets the signal. With a --train_dir
  // the chief gets it first, the others once it has ended: it saves what the ps hold. Returns
  // whether it does.
  bool stop(int exit_code, int signal);
  // SIGKILL to every process, whatever it is told already. REQUIRES: !may_start().
  void kill_all();

  // SIGKILL to a process that was well, for the sake of it: not counted as a failure.
  void kill_task(LocalTask& task);
  // REQUIRES: a process lives.
  void freeze(LocalTask& task, std::chrono::milliseconds time);

  // In the order in which they came: first ps, chief, workers.
  [[nodiscard]] const LocalTasks& tasks() const { return tasks_; }
  [[nodiscard]] const RestartPolicy& policy() const { return policy_; }
  [[nodiscard]] const LaunchOptions& options() const { return options_; }

 private:
  LocalTask& add_task(const net::TaskId& id);
  void add_missing_tasks();
  void start(LocalTask& task, int listen_fd);
  void end_process(LocalTask& task, int signal = SIGTERM);
  asio::awaitable<void> kill_when_impatient(LocalTask& task);
  asio::awaitable<void> end_all(bool chief);
  void move(LocalTask& task);
  [[nodiscard]] const TaskLimits& limits_of(const LocalTask& task) const;
  [[nodiscard]] std::vector<int> cpus_of(LocalTask& task);
  void on_exit(LocalTask& task, int status);
  asio::awaitable<void> restart_after(LocalTask& task, std::chrono::milliseconds delay);
  void cancel_restarts();
  bool stop_in_order(int signal);
  asio::awaitable<void> stop_after(LocalTask& chief, int signal);
  [[nodiscard]] LocalTask* who_can_save() const;
  void stop_processes(int signal);
  void start_grace(std::chrono::seconds grace);
  asio::awaitable<void> kill_after(std::chrono::seconds grace);
  asio::awaitable<void> thaw_after(LocalTask& task, std::chrono::milliseconds delay);
  static void thaw(LocalTask& task);
  asio::awaitable<void> read(data::FileDescriptor pipe, LineHandler handler);
  void tell_if_all_gone();
  void spawn(asio::awaitable<void> work);

  asio::io_context& context_;
  LaunchOptions options_;
  SupervisorEvents events_;
  asio::steady_timer grace_;
  asio::steady_timer gone_;  // cancelled with each process that ends
  bool held_ = false;        // what ends is not started again before all have: restart_all()
  std::size_t readers_ = 0;  // pipes that have not ended
  std::vector<int> cpus_;    // those that this process may use
  std::size_t next_cpu_ = 0;
  RestartPolicy policy_;
  LocalTasks tasks_;  // in the policy's order
};

}  // namespace disttf::roles
