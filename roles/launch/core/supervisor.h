// The tasks of a launch: who is started again, when, who is told to end and killed where that does
// not help, and when the launch is over. What a death means, restart_policy.h decides.
//
// A state machine: it is told what has happened, and at what time; what it wants done it puts into
// effects(), which whoever calls it empties after each call. It wants to be called with time() at
// deadline(). Tasks have the numbers in which they were added. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "roles/launch/core/restart_policy.h"
#include "roles/run/effect_queue.h"

namespace disttf::roles {

// A process that was told to end is killed when it takes longer than this.
inline constexpr std::chrono::seconds kStopGrace{5};

// --- effects

// A new process of the task; then started() or could_not_start().
struct StartTask {
  std::size_t task = 0;
};
// To the task's process, which lives.
struct SignalTask {
  std::size_t task = 0;
  int signal = 0;
};
// Its next process is to have a new address.
struct MoveTask {
  std::size_t task = 0;
};
// Its process has begun, or ended.
struct TaskChanged {
  std::size_t task = 0;
};
// A line of the log.
struct SayLine {
  bool is_error = false;  // else a warning
  std::string text;
};
// What restart_all() asked for: no process lives, and all are to be started (may_start()), or the
// run is over.
struct AllEnded {};
// No process lives, none will be started again, and all that they printed has been read.
struct AllGone {};

// What was asked to become of a task whose process is to end.
enum class Asked : std::uint8_t { kNothing, kRestart, kReplace };

struct SupervisedTask {
  using TimePoint = RestartPolicy::TimePoint;

  std::string name;  // "[worker:1]"
  RestartPolicy::Part part = RestartPolicy::Part::kWorker;
  std::optional<std::uint64_t> memory_mib = {};  // that it may have; for sentences
  bool lives = false;                            // a process of it does
  bool waits = false;                            // to be started again
  bool frozen = false;
  bool fault = false;           // this process was killed on purpose
  bool fails_to_start = false;  // no process of it could be made, and that was logged
  Asked asked = Asked::kNothing;
  std::optional<Ending> ending = {};  // of its last process
  std::uint64_t restarts = 0;
  std::optional<TimePoint> start_at = {};  // while it waits
  std::optional<TimePoint> thaw_at = {};   // while it is frozen
  std::optional<TimePoint> kill_at = {};   // its process was told to end

  // Whether a new process of the task may have a new address. Nobody opens a connection to a
  // worker, and one that is not the chief can do without the addresses of the others.
  [[nodiscard]] bool can_move() const { return part == RestartPolicy::Part::kWorker; }
};

class Supervisor {
 public:
  using TimePoint = RestartPolicy::TimePoint;
  using Effects =
      EffectQueue<StartTask, SignalTask, MoveTask, TaskChanged, SayLine, AllEnded, AllGone>;

  // `engine`: as RestartPolicy's. `saves`: the chief has a directory to save in.
  Supervisor(const RestartOptions& options, bool saves, std::mt19937_64 engine)
      : policy_(options, {}, engine), saves_(saves) {}

  // One more task, which has no process yet.
  void add(std::string name, RestartPolicy::Part part);
  void set_saves(bool saves) { saves_ = saves; }
  void set_memory(std::size_t task, std::optional<std::uint64_t> mib) {
    tasks_.at(task).memory_mib = mib;
  }

  // --- what happens

  void started(std::size_t task, TimePoint now);
  // No process could be made. It is tried again for kStartPatience; then the run ends with 1, or
  // goes on without its evaluator.
  void could_not_start(std::size_t task, const std::string& why, TimePoint now);
  // Its process has ended; `planned` need not be set. Then reaped(), once for all that ended.
  void ended(std::size_t task, Ending ending, TimePoint now);
  void reaped(TimePoint now);
  // Pipes that processes print into were opened, or one of them has been read to its end.
  void pipes_opened(std::size_t count) { pipes_ += count; }
  void pipe_ended();
  // The chief evaluates the result: once it has ended, the workers take as long.
  void evaluation_begins(TimePoint now) { evaluation_at_ = now; }
  void time(TimePoint now);
  [[nodiscard]] TimePoint deadline() const;

  // --- what is asked for

  // SIGTERM, SIGKILL where that does not help, and a new process, at once and at the same address.
  // REQUIRES: a process lives, or waits to be started; and may_start().
  void restart(std::size_t task, TimePoint now);
  // SIGKILL, and a new process, where the task can move at a new address. REQUIRES as above.
  void replace(std::size_t task, TimePoint now);
  // Ends all processes, the chief's first, so that it can save what is; then AllEnded. REQUIRES:
  // may_start().
  void restart_all(TimePoint now);
  // Whether the run's end is still open.
  [[nodiscard]] bool may_start() const { return !policy_.exit_code(); }
  // Ends the run: nothing is started again, and every process gets the signal. With `saves` the
  // chief gets it first, the others once it has ended: it saves what the ps hold. Returns whether
  // it does.
  bool stop(int exit_code, int signal, TimePoint now);
  // SIGKILL to every process, whatever it is told already. REQUIRES: !may_start().
  void kill_all();

  // SIGKILL to a process that was well, for the sake of it: not counted as a failure.
  void kill_task(std::size_t task);
  // REQUIRES: a process lives.
  void freeze(std::size_t task, std::chrono::milliseconds time, TimePoint now);

  [[nodiscard]] const std::vector<SupervisedTask>& tasks() const { return tasks_; }
  [[nodiscard]] const RestartPolicy& policy() const { return policy_; }
  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  // Of restart_all().
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
  void kill_late(std::size_t task, std::chrono::seconds grace);
  void tell_if_all_gone();

  RestartPolicy policy_;
  bool saves_;
  std::vector<SupervisedTask> tasks_;  // in the policy's order
  std::size_t pipes_ = 0;              // that have not ended
  Ends ends_ = Ends::kNone;
  std::optional<std::size_t> saving_;  // the chief, which the others wait for to end
  int stop_signal_ = 0;                // that they get then
  std::optional<TimePoint> grace_at_;  // then who lives is killed
  std::chrono::seconds grace_{0};
  std::optional<TimePoint> evaluation_at_;  // began
  Effects effects_;
};

}  // namespace disttf::roles
