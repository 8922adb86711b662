// What launch does when a task has ended: leave it, restart it, or end the run.
//
// The rules of an orchestrator that restarts on failure: 0 is success; codes below 128 are
// permanent failures; a signal or a code from 128 on (138: "lost peers, restart me") asks for a
// restart. The number of restarts is bounded for the whole job, and delays grow. An evaluator has
// its own budget, so that its restarts do not use up the run's.
//
// Uses no clock and no process: times and endings are passed in. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace disttf::roles {

struct RestartOptions {
  bool on_failure = true;           // false: the first failure ends the run
  std::uint64_t max_restarts = 10;  // of all tasks together; the evaluator has as many of its own
  // Trainers with users' own programs: how long these may take to end after the run; 0: no limit.
  // nullopt: there are none.
  std::optional<std::chrono::seconds> programs_end = {};
};

// How a process ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;        // not 0: the signal that killed it; exit_code has no meaning
  bool lost = false;     // its machine sends no messages any more
  bool planned = false;  // launch killed it for a test: restarted without being counted
};
// How long to retry a process that cannot be created (no memory, a limit on processes or
// descriptors): a short shortage caused by other programs must not end a run, and a lasting one is
// reported within a minute.
inline constexpr std::chrono::seconds kStartPatience{60};

// The ending from a status of waitpid(). `fault`: launch killed the process on purpose.
[[nodiscard]] Ending ending_of(int status, bool fault = false);
// "was killed by signal 9 (Killed)", "ended with exit code 3".
[[nodiscard]] std::string to_string(const Ending& ending);

class RestartPolicy {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // kChief includes a worker 0 that is the chief. An evaluator's end never ends the run.
  enum class Part : std::uint8_t { kPs, kChief, kWorker, kEvaluator };

  enum class Action : std::uint8_t {
    kLeave,    // it has succeeded, or is not needed any more
    kRestart,  // restart it after `delay`
    kStop,     // stop all others; the run has failed
  };
  struct Decision {
    Action action = Action::kLeave;
    std::chrono::milliseconds delay{0};
    // The log line after the task's name: "was killed by signal 9 (Killed); starting it again (1 of
    // 10 restarts)". Empty: no line.
    std::string sentence;
  };

  // `parts`: of the tasks, in the order of their numbers below. `engine`, for the jitter, is seeded
  // differently in each process.
  RestartPolicy(const RestartOptions& options, const std::vector<Part>& parts,
                std::mt19937_64 engine);

  // Adds a task, with the next number.
  void add(Part part);
  // A process of the task has started, for the first time or again.
  void started(std::size_t task, TimePoint now);
  [[nodiscard]] Decision ended(std::size_t task, const Ending& ending, TimePoint now);
  // No process of the task could be created. Returns the delay before the next attempt, which does
  // not count as a restart; nullopt: all attempts failed for kStartPatience.
  [[nodiscard]] std::optional<std::chrono::milliseconds> could_not_start(std::size_t task,
                                                                         TimePoint now);
  // Another cause ends the run: nothing is restarted. Does not change an earlier decision.
  void stop(int exit_code);

  // The run has its result: a task has ended with 0. Tasks other than the chief do so only after
  // the chief has reported that the result is durable. From then on no task is restarted, and
  // only a chief that reports failed training changes the outcome.
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  // The launcher's exit code, once it is decided.
  [[nodiscard]] std::optional<int> exit_code() const noexcept { return exit_code_; }

 private:
  struct TaskState {
    Part part;
    TimePoint started{};
    std::chrono::milliseconds ceiling;  // bound of the next delay
    std::optional<TimePoint> fails_to_start_since = {};
  };

  [[nodiscard]] Decision evaluator_ended(TaskState& task, const Ending& ending, TimePoint now);
  [[nodiscard]] Decision restart(TaskState& task, const Ending& ending, std::uint64_t& restarts,
                                 const char* of, TimePoint now);
  [[nodiscard]] std::chrono::milliseconds next_delay(TaskState& task, TimePoint now);
  [[nodiscard]] std::chrono::milliseconds jittered(std::chrono::milliseconds ceiling);

  RestartOptions options_;
  std::vector<TaskState> tasks_;
  std::mt19937_64 engine_;
  std::uint64_t restarts_ = 0;            // of all tasks except the evaluator
  std::uint64_t evaluator_restarts_ = 0;  // of the evaluator
  bool finished_ = false;
  std::optional<int> exit_code_;
};

}  // namespace disttf::roles
