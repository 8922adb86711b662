// A simulated supervisor of a task and its program: the real core, with what the real shell does in
// virtual time (roles/launch/shell/own_program.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roles/launch/core/own_program_supervisor.h"
#include "run/program/program_message.h"
#include "tests/sim/checks.h"
#include "tests/sim/process.h"
#include "tests/sim/program.h"

namespace disttf::sim {

class OwnProgram final : public Actor, public SimulatedProgram::Machine {
 public:
  // `on_end`: the supervisor has ended, as its task did.
  using OnEnd = std::function<void(int code, const std::string& sentence)>;
  // A message of the supervisor to the task; STARTED has a socket.
  struct FromSupervisor {
    Bytes bytes;
    std::shared_ptr<ProgramSocket> socket = {};
  };

  // `task`: not started yet.
  OwnProgram(World& world, const SimulatedProgram::Work& work, Process& task, OnEnd on_end);

  // --- what the cluster does
  // The task is started with it.
  void start();
  void task_ended(const roles::Ending& ending, const std::string& sentence);
  // All processes end at once.
  void kill();
  // SIGTERM to the supervisor.
  void stop();
  [[nodiscard]] bool is_alive() const noexcept { return is_alive_; }
  // The task is frozen; with `all`, its programs and the supervisor are, too, if the run survives
  // that a program counts as hung for it.
  void freeze_with_task(bool all);
  // A program did what the protocol does not allow, so the task may end with 1.
  [[nodiscard]] bool has_gone_wrong() const noexcept { return has_gone_wrong_; }

  // A program was killed that may have received END, so the supervisor may end
  // with 1 after the task has its result.
  [[nodiscard]] bool was_lost_at_end() const noexcept { return was_lost_at_end_; }

  // --- faults. Each returns false if it cannot happen now.
  // `detail` selects the program, the spare or both, and the moment.
  bool kill_program(std::uint64_t detail);
  bool freeze_program(Duration duration, std::uint64_t detail);
  bool go_wrong(ProgramWrong wrong);

  // --- the task's end of its socket to the supervisor
  // Called if something can be read there or from the program.
  void on_readable(std::function<void()> wake) { wake_task_ = std::move(wake); }
  [[nodiscard]] std::deque<FromSupervisor>& to_task() noexcept { return to_task_; }
  void send_to_supervisor(const roles::ProgramMessage& message);
  // The task has written to this socket, or closed it.
  void wake_program(const ProgramSocket& socket);
  // The task uses a gradient of the program with this socket.
  void gradient_is_taken(const ProgramSocket& socket);
  [[nodiscard]] std::uint64_t draw();

  void on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) override;

  // --- of a program
  bool defers(Actor& actor, std::uint32_t what, std::uint64_t a, std::uint64_t b) override;
  void has_written(const ProgramSocket& socket) override;
  void has_died(SimulatedProgram& program) override;
  bool may_die(const SimulatedProgram& program) override;
  bool takes_wrong(ProgramWrong wrong) override;

 private:
  enum Happening : std::uint32_t { kTime = 1, kMessage, kReap, kWakeTask, kSignalTask };
  struct Running {
    std::unique_ptr<SimulatedProgram> program;
    bool is_handed_over = false;
    bool has_made_step = false;
    bool is_reaped = false;
  };

  void act();
  void carry_out(const roles::StartOwnTask& effect);
  void carry_out(const roles::StartOwnProgram& effect);
  void carry_out(const roles::HandOverProgram& effect);
  void carry_out(const roles::TellTask& effect);
  void carry_out(const roles::SignalOwnTask& effect);
  void carry_out(const roles::SignalOwnProgram& effect);
  void carry_out(const roles::SayLine& effect);
  void carry_out(const roles::SupervisorEnded& effect);
  void read_messages();
  void reap();
  void signal_task(int signal);
  void tell_task(const roles::ProgramMessage& message, std::shared_ptr<ProgramSocket> socket);
  void soon(Happening what, std::uint64_t a = 0);
  [[nodiscard]] Running* find(roles::ProgramId id);
  // The program that was handed over and lives, and the spare that lives; nullptr: there is none.
  [[nodiscard]] Running* active();
  [[nodiscard]] Running* spare();
  [[nodiscard]] bool is_doomed(const Running& running) const;
  [[nodiscard]] bool survives(const Running& struck);
  [[nodiscard]] int doomed_but(const SimulatedProgram* struck) const;

  World& world_;
  const SimulatedProgram::Work work_;
  Process& task_;
  const OnEnd on_end_;
  roles::OwnProgramSupervisor core_;
  std::vector<Running> programs_;  // in the order of their start
  std::deque<FromSupervisor> to_task_;
  std::deque<Bytes> to_supervisor_;
  std::function<void()> wake_task_;
  std::optional<roles::Ending> task_ending_;
  bool is_task_reaped_ = false;
  bool is_alive_ = true;
  bool freezes_with_task_ = false;
  bool is_released_ = false;
  bool was_lost_at_end_ = false;
  int deaths_ = 0;                               // of programs, at most, without a step in between
  ProgramWrong wrong_ = ProgramWrong::kNothing;  // that is still to be done
  bool has_gone_wrong_ = false;
  std::string last_line_;  // why the run has failed
  std::uint64_t drawn_ = 0;
  Time armed_{};  // the time of the next scheduled event
};

}  // namespace disttf::sim
