// The tasks of a launch: which one is restarted and when, which one is stopped, or killed if that
// does not help, and when the launch has ended. restart_policy.h decides what an ending means.
//
// A state machine. The caller passes in events and the time, and carries out effects(), emptying
// them, after each call. It calls time() at deadline(). Tasks are numbered in the order of add().
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "roles/launch/core/restart_policy.h"
#include "run/effects.h"

namespace disttf::roles {

// How long a process may take to end after SIGTERM before it is killed.
inline constexpr std::chrono::seconds kStopGrace{5};

// Notifies the supervisor of a user's own program that the run is over: it ends a task that has not
// taken part in the end. A trainer that was started again in that moment would wait
// --start_timeout for ps that have ended.
inline const int kRunOverSignal = SIGRTMIN;

// --- effects

// Start a new process of the task; then call started() or could_not_start().
struct StartTask {
  std::size_t task = 0;
};
// Send a signal to the task's process, which lives.
struct SignalTask {
  std::size_t task = 0;
  int signal = 0;
};
// Give the task's next process a new address.
struct MoveTask {
  std::size_t task = 0;
};
// The task's process has started or ended.
struct TaskChanged {
  std::size_t task = 0;
};
// Log a line.
struct SayLine {
  bool is_error = false;  // else a warning
  std::string text;
};
// restart_all() is ready: no process lives, and all tasks are to be started if may_start(); else
// the run has ended.
struct AllEnded {};
// No process lives, none will be restarted, and all output has been read.
struct AllGone {};

// The request that ends a task's process.
enum class Asked : std::uint8_t { kNothing, kRestart, kReplace };

struct SupervisedTask {
  using TimePoint = RestartPolicy::TimePoint;

  std::string name;  // "[worker:1]"
  RestartPolicy::Part part = RestartPolicy::Part::kWorker;
  std::optional<std::uint64_t> memory_mib = {};  // its limit; for messages
  bool lives = false;                            // it has a process
  bool waits = false;                            // for its restart
  bool frozen = false;
  bool fault = false;           // this process was killed on purpose
  bool fails_to_start = false;  // its process could not be created, and that was logged
  Asked asked = Asked::kNothing;
  std::optional<Ending> ending = {};  // of its last process
  std::uint64_t restarts = 0;
  std::optional<TimePoint> start_at = {};  // while it waits
  std::optional<TimePoint> thaw_at = {};   // while it is frozen
  std::optional<TimePoint> kill_at = {};   // end of its grace period

  // Whether a new process of the task may have a new address. No task connects to a worker, and a
  // worker that is not the chief does not need the addresses of other workers.
  [[nodiscard]] bool can_move() const { return part == RestartPolicy::Part::kWorker; }
};

class Supervisor {
 public:
  using TimePoint = RestartPolicy::TimePoint;
  using Effects =
      EffectQueue<StartTask, SignalTask, MoveTask, TaskChanged, SayLine, AllEnded, AllGone>;

  // `engine`: as in RestartPolicy. `saves`: the chief has a directory to save in.
  Supervisor(const RestartOptions& options, bool saves, std::mt19937_64 engine)
      : policy_(options, {}, engine), programs_end_(options.programs_end), saves_(saves) {}

  // Adds a task, which has no process yet.
  void add(std::string name, RestartPolicy::Part part);
  void set_saves(bool saves) { saves_ = saves; }
  void set_memory(std::size_t task, std::optional<std::uint64_t> mib) {
    tasks_.at(task).memory_mib = mib;
  }

  // --- events

  void started(std::size_t task, TimePoint now);
  // No process could be created. Retried for kStartPatience; then the run ends with 1, or continues
  // without its evaluator.
  void could_not_start(std::size_t task, const std::string& why, TimePoint now);
  // The task's process has ended; `planned` need not be set. Then reaped(), once for all endings.
  void ended(std::size_t task, Ending ending, TimePoint now);
  void reaped(TimePoint now);
  // Output pipes of processes were opened; one of them has been read to its end.
  void pipes_opened(std::size_t count) { pipes_ += count; }
  void pipe_ended();
  // The chief evaluates the result: after its end the workers need as long.
  void evaluation_begins(TimePoint now) { evaluation_at_ = now; }
  void time(TimePoint now);
  [[nodiscard]] TimePoint deadline() const;

  // --- requests

  // Sends SIGTERM, later SIGKILL if needed, and starts a new process at once at the same address.
  // REQUIRES: a process lives, or waits for its start; and may_start().
  void restart(std::size_t task, TimePoint now);
  // SIGKILL, and a new process, at a new address if the task can move. REQUIRES as above.
  void replace(std::size_t task, TimePoint now);
  // Ends all processes, the chief's first, so that it can save the state; then AllEnded. REQUIRES:
  // may_start().
  void restart_all(TimePoint now);
  // Whether the run has not ended yet.
  [[nodiscard]] bool may_start() const { return !policy_.exit_code(); }
  // Ends the run: nothing is restarted, and every process gets the signal. With `saves` the chief
  // gets it first, the others after its end: it saves the parameters of the ps. Returns whether it
  // saves.
  bool stop(int exit_code, int signal, TimePoint now);
  // SIGKILL to every process, whatever signal it got before. REQUIRES: !may_start().
  void kill_all();

  // SIGKILL to a healthy process, as a test: not counted as a failure.
  void kill_task(std::size_t task);
  // REQUIRES: a process lives.
  void freeze(std::size_t task, std::chrono::milliseconds time, TimePoint now);

  [[nodiscard]] const std::vector<SupervisedTask>& tasks() const { return tasks_; }
  [[nodiscard]] const RestartPolicy& policy() const { return policy_; }
  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  // The stage of restart_all().
  enum class Ends : std::uint8_t { kNone, kChief, kOthers };

  void decide(std::size_t task, TimePoint now);
  void signal(std::size_t task, int signal) {
    effects_.add(SignalTask{.task = task, .signal = signal});
  }
  void say(const std::string& text, bool is_error = false) {
    effects_.add(SayLine{.is_error = is_error, .text = text});
  }
  void thaw(std::size_t task);
  void end_process(std::size_t task, int signal, TimePoint now);
  void end_all(bool chief, TimePoint now);
  [[nodiscard]] bool is_chief(std::size_t task) const {
    return tasks_[task].part == RestartPolicy::Part::kChief;
  }
  [[nodiscard]] bool any_lives(bool chief) const;
  [[nodiscard]] std::optional<std::size_t> who_can_save() const;
  void move(std::size_t task);
  void cancel_restarts();
  bool stop_in_order(int signal, TimePoint now);
  void stop_processes(int signal, TimePoint now);
  void start_grace(std::chrono::seconds grace, TimePoint now);
  void wait_for_leavers(TimePoint now);
  void notify_trainers();
  void kill_late(std::size_t task, std::chrono::seconds grace);
  void report_if_all_gone();

  RestartPolicy policy_;
  const std::optional<std::chrono::seconds> programs_end_;
  bool saves_;
  std::vector<SupervisedTask> tasks_;  // in the policy's order
  std::size_t pipes_ = 0;              // open ones
  Ends ends_ = Ends::kNone;
  std::optional<std::size_t> saving_;  // the chief, whose end the others wait for
  int stop_signal_ = 0;                // the signal that the others get then
  std::optional<TimePoint> grace_at_;  // end of the grace period
  std::chrono::seconds grace_{0};
  std::optional<TimePoint> notify_at_;      // trainers with programs get kRunOverSignal then
  std::optional<TimePoint> evaluation_at_;  // its start
  Effects effects_;
};

// Which process of the chief has reported that it trains. A chief that has been replaced may leave
// records in its pipe, which are read after its successor has started.
//
// Not thread-safe.
class ReportingChief {
 public:
  // A record of a step was read from the pipe of the process `writer`, while the chief's process is
  // `chief` (-1: none runs now). Returns whether the record counts: it does not if another process
  // has taken the writer's place.
  [[nodiscard]] bool take(pid_t writer, pid_t chief) noexcept {
    if (chief > 0 && writer != chief) return false;
    reported_ = writer;
    return true;
  }
  // Returns whether this process has reported a step; `chief` as in take().
  [[nodiscard]] bool trains(pid_t chief) const noexcept { return chief > 0 && chief == reported_; }

 private:
  pid_t reported_ = -1;
};

}  // namespace disttf::roles
