// A simulated task's connection to its program and to the supervisor: the real session, with what
// run/program/program_link.cc does. The trainer waits (tests/sim/trainer_program.cc).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "run/program/program_session.h"
#include "tests/sim/own_program.h"

namespace disttf::sim {

class ProgramLink {
 public:
  // `wake`: wakes the thread of the task that waits.
  ProgramLink(World& world, OwnProgram& own, const ProgramOptions& options, std::string name,
              std::function<void()> wake);

  void welcome(std::string text, std::size_t size, Time now);
  [[nodiscard]] ProgramMemory& memory() noexcept { return *memory_; }
  // Asks of what lies in the memory.
  void ask(const roles::ProgramRequest& request, Time now);
  void end(std::uint64_t step);
  [[nodiscard]] bool is_released() const noexcept { return session_.is_released(); }
  // The task was suspended for `missed`.
  void forgive(Duration missed, Time now) { session_.forgive(missed, now); }
  [[nodiscard]] bool has_layout() const noexcept { return session_.has_layout(); }
  [[nodiscard]] bool has_answer() const noexcept { return session_.answer().has_value(); }
  // Checks invariant 23: it is an answer to what was asked. REQUIRES: has_answer().
  [[nodiscard]] const roles::ProgramAnswer& answer();

  // Whether it waits. Only then it is woken.
  bool is_waiting = false;
  [[nodiscard]] bool is_readable() const noexcept;
  [[nodiscard]] Time deadline() const noexcept { return session_.deadline(); }
  // Takes at most one packet of the program and one of the supervisor. Throws Failure.
  void take_some(Time now);

 private:
  void take_from_supervisor(Time now);
  void take_from_program(Time now);
  void perform();
  void apply(const roles::SendToProgram& effect);
  void apply(const roles::SendToSupervisor& effect);
  void apply(const roles::RowsAsked& effect);
  void apply(const roles::ProgramNote& effect);
  void send(const roles::ProgramMessage& message, std::string_view body,
            std::shared_ptr<ProgramMemory> memory = {});

  World& world_;
  OwnProgram& own_;
  const std::string name_;
  roles::ProgramSession session_;
  std::shared_ptr<ProgramSocket> program_;  // nullptr: there is none
  std::shared_ptr<ProgramMemory> memory_;
  roles::ProgramKind asked_kind_ = roles::ProgramKind::kCompute;
  std::uint64_t asked_ = 0;
  std::uint64_t sent_ = 0;  // what a program was asked last
};

}  // namespace disttf::sim
