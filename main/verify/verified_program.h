// One process of a program that `disttf verify` examines: this process is its supervisor. A thread
// watches it, so that the computing thread can wait for answers as a task does.
//
// To be used by one thread, one object at a time.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "data/file.h"
#include "net/waiting/descriptor.h"
#include "net/waiting/interrupt.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/launch/shell/own_program.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {

// Blocks SIGCHLD in this thread and in those that it starts; the descriptor reads it. Throws
// std::system_error.
[[nodiscard]] data::FileDescriptor watch_child_signals();

class VerifiedProgram {
 public:
  // Starts the process, with allow(limit). Its output goes to standard error. `child_signals`: of
  // watch_child_signals(). Throws std::system_error.
  VerifiedProgram(const Program& program, const net::Cluster& cluster, const net::TaskId& self,
                  bool is_spare, std::chrono::seconds limit, int child_signals);
  // Kills the process and what it has started.
  ~VerifiedProgram();
  VerifiedProgram(const VerifiedProgram&) = delete;
  VerifiedProgram& operator=(const VerifiedProgram&) = delete;

  // The task's end of the socket to the supervisor, with STARTED in it, for ProgramLink. It ends
  // when the process has ended. To be called once.
  [[nodiscard]] int take_task_socket() noexcept { return task_socket_.release(); }

  // From now on it may take this long until the next call; then it is ended as a program that
  // hangs. 0: no limit, for good.
  void allow(std::chrono::seconds limit);

  // Waits until it has ended; nullopt: it has not, within `limit`. 0: no limit. Throws the Failure
  // of `stop`.
  [[nodiscard]] std::optional<Ending> await_end(const StopSignal& stop, std::chrono::seconds limit);
  // "was killed by signal 9 (Killed)", "hangs: ...". REQUIRES: it has ended.
  [[nodiscard]] std::string end_text() const;

 private:
  void watch();
  void drain_signals() const;
  void take_message();
  void pass_deadline();
  void abort_process();
  bool reap();

  const int child_signals_;
  pid_t pid_ = -1;
  net::Descriptor task_socket_;
  net::Descriptor supervisor_;  // the watching thread's
  net::Interrupt stop_watching_;
  net::Interrupt has_ended_;

  mutable std::mutex mutex_;
  net::Deadline deadline_ = net::Deadline::max();
  bool is_aborted_ = false;  // it was sent SIGABRT, because it hangs
  std::optional<Ending> ending_;

  std::thread thread_;  // last: it uses the others
};

}  // namespace disttf::roles
