// A task and the user's own program that computes its gradients (docs/program_protocol.md): which
// of the two is started when, which one is ended, and with which code the supervisor ends.
//
// The task runs once: its end is the supervisor's. A program that was killed is started again, or
// is replaced by the spare, a second copy that waits. A program that exits by itself before the run
// is over ends the task, too.
//
// A state machine. The caller passes in events and the time, and carries out effects(), emptying
// them, after each call. It calls time() at deadline(). It passes in the messages of the task that
// have come before it passes in the end of a process. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "roles/launch/core/restart_policy.h"
#include "roles/launch/core/supervisor.h"
#include "run/effects.h"
#include "run/program/program_message.h"

namespace disttf::roles {

// So many programs in succession may be killed before they have made a step.
inline constexpr int kMostProgramDeaths = 3;
// So many programs in succession may die of the same fault, such as a segmentation fault, before
// they have made kSettledSteps. Deaths by SIGKILL have no such limit: a machine that lacks memory
// kills again and again, and the run goes on.
inline constexpr int kMostFaults = 10;
// So many spares in succession may end before one is used.
inline constexpr int kMostSpareDeaths = 3;
// When a spare that has ended is replaced.
inline constexpr std::chrono::seconds kSpareDelay{5};
// How long a task may take to say why the program has failed, before the supervisor ends it.
inline constexpr std::chrono::seconds kTaskReport{2};
// How long a task may take to end after that: a chief saves.
inline constexpr std::chrono::seconds kTaskGrace{60};
// How long it may take to end after a signal that this supervisor has passed on. An engine that
// allows less kills both.
inline constexpr std::chrono::seconds kStoppedTaskGrace{600};
// After this time a program that has not ended since the run was over is mentioned in the log.
inline constexpr std::chrono::seconds kLongEnd{60};

// --- effects

// Numbers the processes of programs, from 1 on, in the order of their start.
using ProgramId = std::uint64_t;

struct StartOwnTask {};
// Start a process of the program, with a socket; then call program_started() or could_not_start().
struct StartOwnProgram {
  ProgramId id = 0;
  bool is_spare = false;
};
// Send the message STARTED with the task's end of this program's socket, which is then closed here.
struct HandOverProgram {
  ProgramId id = 0;
  std::uint64_t number = 0;  // of the programs that were handed over, from 1 on
};
// Send a message to the task, if it lives.
struct TellTask {
  ProgramMessage message;
};
struct SignalOwnTask {
  int signal = 0;
};
// Send a signal to the program and its process group. A stopped process must be continued to
// receive it.
struct SignalOwnProgram {
  ProgramId id = 0;
  int signal = 0;
};
// All processes have ended. `signal`: not 0: this process dies of it, as its task did.
struct SupervisorEnded {
  int exit_code = 0;
  int signal = 0;
};

struct OwnProgramRules {
  bool has_spare = true;
  std::chrono::seconds end_timeout{600};  // from RELEASE on; 0: no limit
};

class OwnProgramSupervisor {
 public:
  using TimePoint = RestartPolicy::TimePoint;
  using Effects = EffectQueue<StartOwnTask, StartOwnProgram, HandOverProgram, TellTask,
                              SignalOwnTask, SignalOwnProgram, SayLine, SupervisorEnded>;

  explicit OwnProgramSupervisor(const OwnProgramRules& rules) : rules_(rules) {}

  // Starts the task and the program.
  void begin();

  // --- events

  void program_started(ProgramId id);
  // No process could be created. Retried for kStartPatience.
  void could_not_start(ProgramId id, const std::string& why, TimePoint now);
  // The program has sent something: as a spare it is ready from now on.
  void program_spoke(ProgramId id) { is_spare_ready_ = is_spare_ready_ || spare_ == id; }
  void program_ended(ProgramId id, const Ending& ending, TimePoint now);
  void task_ended(const Ending& ending, TimePoint now);
  // A message from the task. Unknown kinds are ignored.
  void message(const ProgramMessage& message, TimePoint now);
  // SIGTERM, SIGINT or SIGHUP: ends the task, and with it the program. A task that takes longer
  // than kStoppedTaskGrace is killed.
  void stop(int signal, TimePoint now);
  // The run ended some time ago (kRunOverSignal): ends a task that has not sent RELEASE, because it
  // cannot rejoin the run.
  void run_over(TimePoint now);
  void time(TimePoint now);
  // This process was suspended for `missed`, probably with the others: that time does not count.
  void forgive(TimePoint::duration missed);
  [[nodiscard]] TimePoint deadline() const;

  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  // The program that computes.
  struct Active {
    ProgramId id = 0;           // 0: it has no process now
    std::uint64_t number = 0;   // 0: it is not handed over yet
    bool is_steady = false;     // it has made a step
    bool is_settled = false;    // it has made kSettledSteps
    bool is_signalled = false;  // this supervisor ends it
    bool is_hung = false;       // because it hangs
  };

  void start_program();
  void start_spare();
  void active_ended(const Ending& ending, TimePoint now);
  void restart(const Ending& ending, const Active& ended, TimePoint now);
  void count_death(const Ending& ending, const Active& ended);
  void ended_after_the_run(const Ending& ending);
  void spare_ended(const std::string& how, TimePoint now);
  void take_steady(std::uint64_t number);
  void release(const ProgramMessage& message, TimePoint now);
  void start_nothing_more();
  void end_program(int signal, TimePoint now);
  void end_late_program(TimePoint now);
  void fail(const std::string& sentence, TimePoint now);
  void end_task_within(std::chrono::seconds limit, TimePoint now);
  void check_end();
  // Whether the run needs a program.
  [[nodiscard]] bool may_start() const;
  // Whether a message concerns the program that lives; 0: that one.
  [[nodiscard]] bool is_active(std::uint64_t number) const;
  [[nodiscard]] std::chrono::milliseconds next_delay();
  void say(const std::string& text, bool is_error = false) {
    effects_.add(SayLine{.is_error = is_error, .text = text});
  }

  const OwnProgramRules rules_;
  bool task_lives_ = false;
  std::optional<Ending> task_ending_;
  Active active_;
  std::optional<ProgramId> spare_;
  bool is_spare_ready_ = false;  // spare_ has imported everything, and waits
  ProgramId last_id_ = 0;
  std::uint64_t last_number_ = 0;
  int deaths_ = 0;                      // of programs, without a step in between
  int fault_ = 0;                       // the signal that killed the last one that died of a fault
  int faults_ = 0;                      // so many of them in succession
  int spare_deaths_ = 0;                // of spares, without a use in between
  std::chrono::milliseconds delay_{0};  // before the start after the next death
  std::optional<TimePoint> fails_to_start_since_;
  bool is_released_ = false;      // the run is over
  bool is_stopping_ = false;      // a signal has asked for the end
  bool has_failed_ = false;       // this supervisor has reported an error
  std::optional<Ending> exited_;  // of a program that has ended by itself during the run
  bool exited_has_run_ = false;   // it had made a step

  std::optional<TimePoint> start_at_;      // the next start of the program
  std::optional<TimePoint> spare_at_;      // the next start of a spare
  std::optional<TimePoint> kill_at_;       // SIGKILL to the program
  std::optional<TimePoint> slow_at_;       // a log line on a program that does not end
  std::optional<TimePoint> end_at_;        // the end of such a program
  std::optional<TimePoint> fail_at_;       // exited_ is reported, if the task has not done so
  std::optional<TimePoint> task_kill_at_;  // SIGKILL to the task
  Effects effects_;
};

}  // namespace disttf::roles
