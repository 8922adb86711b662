// What launch does about a task that has ended: leave it, start it again, or end the run.
//
// The rules of an orchestrator that restarts on failure: 0 is done, codes below 128 are permanent,
// a signal or a code from 128 on (138: "lost peers, start me again") asks for another try. The
// number of tries is bounded for the job as a whole, and each comes later than the one before. An
// evaluator has a budget of its own: its restarts use up none of the run's.
//
// Knows no clock and no process: times and endings are passed in. Not thread-safe.
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
  std::uint64_t max_restarts = 10;  // of all tasks together; as many again of the evaluator
};

// How a process ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;        // not 0: that killed it, and exit_code says nothing
  bool lost = false;     // nothing is heard of its machine any more
  bool planned = false;  // launch itself did it, for the sake of it: mended without being counted
};
// A process that cannot be made (no memory, a limit on processes or descriptors) is tried again for
// this long: a limit that other programs use up for a moment is no reason to end a run, and one
// that lasts is reported within a minute.
inline constexpr std::chrono::seconds kStartPatience{60};

// Of a status that waitpid() gave. `fault`: launch has killed it on purpose.
[[nodiscard]] Ending ending_of(int status, bool fault = false);
// "was killed by signal 9 (Killed)", "ended with exit code 3".
[[nodiscard]] std::string to_string(const Ending& ending);

class RestartPolicy {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // kChief: worker 0 too, where it is. An evaluator's end is never the run's.
  enum class Part : std::uint8_t { kPs, kChief, kWorker, kEvaluator };

  enum class Action : std::uint8_t {
    kLeave,    // it is done, or not needed any more
    kRestart,  // start it again after `delay`
    kStop,     // stop all others; the run has failed
  };
  struct Decision {
    Action action = Action::kLeave;
    std::chrono::milliseconds delay{0};
    // What a log line says after the task's name: "was killed by signal 9 (Killed); starting it
    // again (1 of 10 restarts)". Empty: nothing worth a line.
    std::string sentence;
  };

  // `parts`: of the tasks, in the order of the numbers that name them below. `engine` for the
  // jitter: seeded differently in each process.
  RestartPolicy(const RestartOptions& options, const std::vector<Part>& parts,
                std::mt19937_64 engine);

  // One more task, with the next number.
  void add(Part part);
  // A process of the task has been started, for the first time or again.
  void started(std::size_t task, TimePoint now);
  [[nodiscard]] Decision ended(std::size_t task, const Ending& ending, TimePoint now);
  // No process of the task could be made. Returns the delay before the next try, which is not
  // counted as a restart; nullopt: none was made for kStartPatience.
  [[nodiscard]] std::optional<std::chrono::milliseconds> could_not_start(std::size_t task,
                                                                         TimePoint now);
  // Somebody else ends the run: nothing is started again. Has no effect on what is decided already.
  void stop(int exit_code);

  // The run has its result: a task has ended with 0, which all but the chief do only after the
  // chief has said that the result is durable. From then on no task's death is mended, and
  // none changes the outcome but that of a chief which says that training has come to nothing.
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  // What the launcher exits with, once it is decided.
  [[nodiscard]] std::optional<int> exit_code() const noexcept { return exit_code_; }

 private:
  struct TaskState {
    Part part;
    TimePoint started{};
    std::chrono::milliseconds ceiling;  // of the next delay
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
  std::uint64_t restarts_ = 0;            // of all tasks but the evaluator
  std::uint64_t evaluator_restarts_ = 0;  // of the evaluator
  bool finished_ = false;
  std::optional<int> exit_code_;
};

}  // namespace disttf::roles
