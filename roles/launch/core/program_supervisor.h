// Replicated programs, `disttf launch -- COMMAND`: which part of which task runs when, and how the
// run ends. A task consists of up to three programs in sequence.
//
// A state machine. The caller passes in events and the time, and carries out effects(), emptying
// them, after each call. It calls time() at deadline(). Tasks are numbered in the order of add().
// Not thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "roles/launch/core/restart_policy.h"
#include "run/effects.h"

namespace disttf::roles {

// The parts of a task. The finalizer is the cleanup: it runs wherever the command has run, whatever
// has happened, and is not stopped.
enum class ProgramPart : std::uint8_t { kInitializer, kCommand, kFinalizer };
inline constexpr std::size_t kProgramParts = 3;

// --- effects

// Start a process group with this part of the task, which has none now; then call started() or
// could_not_start().
struct StartPart {
  std::size_t task = 0;
  ProgramPart part = ProgramPart::kCommand;
};
// Send a signal to the task's group. A stopped process must be continued to receive it.
struct SignalGroup {
  std::size_t task = 0;
  int signal = 0;
};
// Log a warning.
struct ProgramWarning {
  std::string text;
};
// All tasks have ended, but one of their pipes is still open after the longest wait.
struct PipesAreLate {};
// All tasks have ended, and their output has been read or given up.
struct ProgramsEnded {};

class ProgramSupervisor {
 public:
  using TimePoint = RestartPolicy::TimePoint;
  using Effects = EffectQueue<StartPart, SignalGroup, ProgramWarning, PipesAreLate, ProgramsEnded>;

  // Adds a task. `prefix`: "[worker:1]". `has`: which parts it has. `is_worker`: the run ends when
  // all workers have ended.
  void add(std::string prefix, bool is_worker, const std::array<bool, kProgramParts>& has);
  // Starts the run, after all calls of add().
  void begin();

  // The process of the part last requested runs.
  void started(std::size_t task);
  // No process could be created. Retried for kStartPatience; then the task has failed, with 1.
  void could_not_start(std::size_t task, const std::string& why, TimePoint now);
  // The process of the part started last, and its group, have ended.
  void ended(std::size_t task, const Ending& ending, TimePoint now);
  // Output pipes of processes were opened; one of them has been read to its end.
  void pipes_opened(std::size_t count) { pipes_ += count; }
  void pipe_ended();
  // After PipesAreLate: waits for the pipes once more.
  void wait_for_pipes(TimePoint now);
  // A signal ends the run, or the wait for output.
  void stop(int exit_code, int signal, TimePoint now);
  void time(TimePoint now);
  [[nodiscard]] TimePoint deadline() const;

  // The launcher's exit code, once all have ended.
  [[nodiscard]] int exit_code() const;
  // The task whose failure ended the run.
  [[nodiscard]] std::optional<std::size_t> failed() const noexcept { return failed_; }
  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  struct ProgramTask {
    std::string prefix;
    bool is_worker = false;
    std::array<bool, kProgramParts> has{};
    std::size_t next = 0;  // the part after the one that runs
    bool lives = false;    // a part runs, or is to be started
    bool failed = false;
    bool ran = false;  // the command's process was created
    // Of a part whose process could not be created: since when, and the time of the next attempt.
    std::optional<TimePoint> fails_to_start_since = {};
    std::optional<TimePoint> start_at = {};
    std::chrono::milliseconds delay{0};
  };

  void start_next(std::size_t task);
  [[nodiscard]] static StartPart part_to_start(std::size_t number, const ProgramTask& task);
  [[nodiscard]] bool may_run(const ProgramTask& task, ProgramPart part) const;
  void start_again(TimePoint now);
  void fail(std::size_t task, const Ending& ending, TimePoint now);
  void end_run(int exit_code, int signal, TimePoint now);
  [[nodiscard]] bool all_gone() const;
  [[nodiscard]] bool workers_are_done() const;
  void check_gone(TimePoint now);

  std::vector<ProgramTask> tasks_;
  std::size_t pipes_ = 0;                // open ones
  std::optional<int> exit_code_;         // once it is decided
  std::optional<std::size_t> failed_;    // the task whose failure decided it
  bool killed_ = false;                  // tasks that outlived the grace period were killed
  std::optional<TimePoint> grace_at_;    // end of the grace period
  std::optional<TimePoint> drained_at_;  // when open pipes are late
  Effects effects_;
};

}  // namespace disttf::roles
