// A supervisor of a task and a user's program in time that the test makes: no process is started.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "roles/launch/core/own_program_supervisor.h"
#include "tests/roles/virtual_time.h"

namespace disttf::roles {

inline constexpr Ending kProgramKilled{.signal = SIGKILL};

class OwnProgramSupervisorTest : public testing::Test {
 protected:
  using Core = OwnProgramSupervisor;

  void begin(const OwnProgramRules& rules = {.has_spare = false}) {
    core_.emplace(rules);
    core_->begin();
    take_effects();
  }
  // Carries out the effects as the shell does.
  void take_effects() {
    core_->effects().drain([this](const auto& effect) { take(effect); });
  }
  void take(const StartOwnTask& /*effect*/) { ++tasks_; }
  void take(const StartOwnProgram& effect) {
    if (cannot_start_) {
      core_->could_not_start(effect.id, "no processes", now_);
      return;
    }
    (effect.is_spare ? spares_ : programs_).push_back(effect.id);
    core_->program_started(effect.id);
  }
  void take(const HandOverProgram& effect) { handed_over_.emplace_back(effect.id, effect.number); }
  void take(const TellTask& effect) { told_.push_back(effect.message); }
  void take(const SignalOwnTask& effect) { task_signals_.push_back(effect.signal); }
  void take(const SignalOwnProgram& effect) { signals_.emplace_back(effect.id, effect.signal); }
  void take(const SayLine& effect) {
    (effect.is_error ? errors_ : warnings_).push_back(effect.text);
  }
  void take(const SupervisorEnded& effect) {
    EXPECT_FALSE(end_.has_value()) << "ended twice";
    end_ = std::pair(effect.exit_code, effect.signal);
  }

  void end_program(ProgramId id, const Ending& ending) {
    core_->program_ended(id, ending, now_);
    take_effects();
  }
  void end_task(const Ending& ending) {
    core_->task_ended(ending, now_);
    take_effects();
  }
  void send(ProgramKind kind, std::uint64_t number, std::uint32_t signal = 0) {
    core_->message({.kind = kind, .number = signal, .step = number}, now_);
    take_effects();
  }
  void stop(int signal) {
    core_->stop(signal, now_);
    take_effects();
  }
  void run_over() {
    core_->run_over(now_);
    take_effects();
  }
  void pass(std::chrono::nanoseconds time) {
    pass_time(*core_, now_, now_ + time, [this] { take_effects(); });
  }
  // The id of the program that was started last.
  [[nodiscard]] ProgramId program() const { return programs_.back(); }
  std::vector<std::pair<ProgramId, int>> take_signals() { return std::exchange(signals_, {}); }
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

  Core::TimePoint now_{std::chrono::hours(1)};
  std::optional<Core> core_;
  int tasks_ = 0;
  std::vector<ProgramId> programs_;
  std::vector<ProgramId> spares_;
  std::vector<std::pair<ProgramId, std::uint64_t>> handed_over_;
  std::vector<ProgramMessage> told_;
  std::vector<int> task_signals_;
  std::vector<std::pair<ProgramId, int>> signals_;
  std::vector<std::string> warnings_;
  std::vector<std::string> errors_;
  std::optional<std::pair<int, int>> end_;  // exit code, signal
  bool cannot_start_ = false;
};

}  // namespace disttf::roles
