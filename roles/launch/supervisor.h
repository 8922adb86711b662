// The tasks of a launch as processes: started, reaped, started again as the restart policy says,
// stopped.
//
// Knows neither what is printed nor who asks: lines, progress and sentences go to its owner.
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <sys/types.h>

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

#include "net/cluster.h"
#include "roles/launch/launcher.h"
#include "roles/launch/reserved_port.h"
#include "roles/launch/restart_policy.h"

namespace disttf::roles {

// One task and its process, while there is one.
struct LocalTask {
  std::size_t number = 0;  // its place in Supervisor::tasks(), and the policy's name for it
  net::TaskId id;
  std::string name;  // "[worker:1]"
  bool is_chief = false;
  ReservedPort port;
  pid_t pid = -1;              // -1 while no process of the task lives
  asio::steady_timer restart;  // runs while `waits`
  bool waits = false;          // to be started again
  asio::steady_timer thaw;     // runs while this process is frozen
  bool frozen = false;
  bool fault = false;  // this process was killed on purpose
};

struct SupervisorEvents {
  // A line that a task has printed. `is_result`: on the chief's standard output.
  std::function<void(const LocalTask& task, std::string_view line, bool is_result)> line;
  std::function<void(std::string_view record)> progress;      // roles/progress.h
  std::function<void(const LocalTask& chief)> chief_changed;  // its process has begun, or ended
  std::function<void(const std::string& sentence)> say;
  std::function<void()> all_gone;  // no process lives, and none will be started again
};

class Supervisor {
 public:
  // `context` and `options` must outlive the object. Reserves a port for every task. Throws
  // std::system_error.
  Supervisor(asio::io_context& context, const LaunchOptions& options, SupervisorEvents events);

  // Throws std::system_error.
  void start_all();
  // To be called after SIGCHLD.
  void reap();
  // Ends the run: nothing is started again, and every process gets the signal.
  void stop(int exit_code, int signal);

  // SIGKILL to a process that was well, for the sake of it: not counted as a failure.
  void kill_task(LocalTask& task);
  // REQUIRES: a process lives.
  void freeze(LocalTask& task, std::chrono::milliseconds time);

  [[nodiscard]] const std::vector<std::unique_ptr<LocalTask>>& tasks() const { return tasks_; }
  [[nodiscard]] const RestartPolicy& policy() const { return policy_; }

 private:
  void add_task(const net::TaskId& id);
  void start(LocalTask& task, int listen_fd);
  [[nodiscard]] std::vector<std::string> arguments_for(const net::TaskId& id) const;
  void on_exit(LocalTask& task, int status);
  asio::awaitable<void> restart_after(LocalTask& task, std::chrono::milliseconds delay);
  void cancel_restarts();
  void stop_processes(int signal);
  void start_grace(std::chrono::seconds grace);
  asio::awaitable<void> kill_after(std::chrono::seconds grace);
  asio::awaitable<void> thaw_after(LocalTask& task, std::chrono::milliseconds delay);
  static void thaw(LocalTask& task);
  void tell_if_all_gone();
  void spawn(asio::awaitable<void> work);

  asio::io_context& context_;
  const LaunchOptions& options_;
  SupervisorEvents events_;
  asio::steady_timer grace_;
  net::Cluster cluster_;
  RestartPolicy policy_;
  std::vector<std::unique_ptr<LocalTask>> tasks_;  // in the policy's order
};

}  // namespace disttf::roles
