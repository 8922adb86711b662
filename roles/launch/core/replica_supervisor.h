// Programs that are replicated, `disttf launch -- COMMAND`: which part of which task runs when, and
// how all of it ends. A task is up to three programs, one after the other.
//
// A state machine: it is told what has happened, and at what time; what it wants done it puts into
// effects(), which whoever calls it empties after each call. It wants to be called with time() at
// deadline(). Tasks have the numbers in which they were added. Not thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "roles/launch/core/restart_policy.h"
#include "roles/run/effect_queue.h"

namespace disttf::roles {

// The parts of a task. The last one is what is to be done at the end, whatever has happened: it
// runs where the command ran, and nobody tells it to stop.
enum class ReplicaPart : std::uint8_t { kInitializer, kCommand, kFinalizer };
inline constexpr std::size_t kReplicaParts = 3;

// --- effects

// A process group with this part of the task, which none has now; then started() or
// could_not_start().
struct StartPart {
  std::size_t task = 0;
  ReplicaPart part = ReplicaPart::kCommand;
};
// To the task's group. A process in it that is stopped is to take the signal as well.
struct SignalGroup {
  std::size_t task = 0;
  int signal = 0;
};
// A warning of the log.
struct ReplicaWarning {
  std::string text;
};
// All tasks are over, and still a pipe of theirs is open, for as long as any is waited for.
struct PipesAreLate {};
// All tasks are over, and what they printed has been read; or nobody wants to wait for that.
struct ReplicasEnded {};

class ReplicaSupervisor {
 public:
  using TimePoint = RestartPolicy::TimePoint;
  using Effects = EffectQueue<StartPart, SignalGroup, ReplicaWarning, PipesAreLate, ReplicasEnded>;

  // One more task. `prefix`: "[worker:1]". `has`: which parts it has. `is_worker`: the run is over
  // once all of these are.
  void add(std::string prefix, bool is_worker, const std::array<bool, kReplicaParts>& has);
  // All have been added.
  void begin();

  // A process of the part that was asked for last lives.
  void started(std::size_t task);
  // None could be made. It is tried again for kStartPatience; then the task has failed, with 1.
  void could_not_start(std::size_t task, const std::string& why, TimePoint now);
  // The process of the part that was started last has ended, and its group with it.
  void ended(std::size_t task, const Ending& ending, TimePoint now);
  // Pipes that processes print into were opened, or one of them has been read to its end.
  void pipes_opened(std::size_t count) { pipes_ += count; }
  void pipe_ended();
  // After PipesAreLate: they are to be waited for once more.
  void wait_for_pipes(TimePoint now);
  // A signal ends the run, or the wait for what was printed.
  void stop(int exit_code, int signal, TimePoint now);
  void time(TimePoint now);
  [[nodiscard]] TimePoint deadline() const;

  // What the launcher exits with, once all is over.
  [[nodiscard]] int exit_code() const;
  // The task whose failure has ended the run.
  [[nodiscard]] std::optional<std::size_t> failed() const noexcept { return failed_; }
  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  struct ReplicaTask {
    std::string prefix;
    bool is_worker = false;
    std::array<bool, kReplicaParts> has{};
    std::size_t next = 0;  // the part that comes after the one that runs
    bool lives = false;    // a part runs, or is to be started
    bool failed = false;
    bool ran = false;  // the command was started
    // Of a part of which no process could be made: since when, and when it is tried again.
    std::optional<TimePoint> fails_to_start_since = {};
    std::optional<TimePoint> start_at = {};
    std::chrono::milliseconds delay{0};
  };

  void start_next(std::size_t task);
  [[nodiscard]] static StartPart part_to_start(std::size_t number, const ReplicaTask& task);
  [[nodiscard]] bool may_run(const ReplicaTask& task, ReplicaPart part) const;
  void start_again(TimePoint now);
  void fail(std::size_t task, const Ending& ending, TimePoint now);
  void end_run(int exit_code, int signal, TimePoint now);
  [[nodiscard]] bool all_gone() const;
  [[nodiscard]] bool workers_are_done() const;
  void check_gone(TimePoint now);

  std::vector<ReplicaTask> tasks_;
  std::size_t pipes_ = 0;                // that have not ended
  std::optional<int> exit_code_;         // once it is decided
  std::optional<std::size_t> failed_;    // whose failure has decided it
  bool killed_ = false;                  // who did not end when told to
  std::optional<TimePoint> grace_at_;    // then who lives is killed
  std::optional<TimePoint> drained_at_;  // then pipes are late
  Effects effects_;
};

}  // namespace disttf::roles
