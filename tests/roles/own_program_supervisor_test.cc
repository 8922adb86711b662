// A task and a user's program in time that the test makes: no process is started.
#include "roles/launch/core/own_program_supervisor.h"

#include <gmock/gmock.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "roles/run/outcome.h"
#include "tests/roles/virtual_time.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr Ending kProgramKilled{.signal = SIGKILL};

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
  void pass(std::chrono::nanoseconds time) {
    pass_time(*core_, now_, now_ + time, [this] { take_effects(); });
  }
  // The id of the program that was started last.
  [[nodiscard]] ProgramId program() const { return programs_.back(); }
  std::vector<std::pair<ProgramId, int>> take_signals() { return std::exchange(signals_, {}); }
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }
  std::vector<std::string> take_errors() { return std::exchange(errors_, {}); }

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

// --- A program that is killed

TEST_F(OwnProgramSupervisorTest, StartsBothAndHandsTheProgramOver) {
  begin();
  EXPECT_EQ(tasks_, 1);
  EXPECT_THAT(programs_, ElementsAre(1U));
  EXPECT_THAT(handed_over_, ElementsAre(Pair(1U, 1U)));
}

TEST_F(OwnProgramSupervisorTest, AKilledProgramIsReportedAndStartedAgainAtOnce) {
  begin();
  end_program(1, kProgramKilled);
  EXPECT_THAT(told_, ElementsAre(ProgramMessage{
                         .kind = ProgramKind::kEnded, .number = 0, .step = 1, .count = SIGKILL}));
  EXPECT_THAT(handed_over_, ElementsAre(Pair(1U, 1U), Pair(2U, 2U)));
  EXPECT_THAT(warnings_,
              ElementsAre("the program was killed by signal 9 (Killed); starting it again"));
  EXPECT_THAT(task_signals_, IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, TheNextStartWaits) {
  begin();
  end_program(1, kProgramKilled);
  end_program(2, kProgramKilled);
  EXPECT_EQ(programs_.size(), 2U);
  pass(milliseconds(249));
  EXPECT_EQ(programs_.size(), 2U);
  pass(milliseconds(1));
  EXPECT_EQ(programs_.size(), 3U);
}

TEST_F(OwnProgramSupervisorTest, GivesUpAfterThreeDeathsWithoutAStep) {
  begin();
  for (int death = 0; death < kMostProgramDeaths; ++death) {
    end_program(program(), {.signal = SIGSEGV});
    pass(seconds(1));
  }
  EXPECT_EQ(programs_.size(), 3U);
  EXPECT_THAT(errors_, ElementsAre("the program was killed by signal 11 (Segmentation fault) 3 "
                                   "times without a step; parameters are read-only for it: a write "
                                   "there is a segmentation fault"));
  EXPECT_THAT(task_signals_, ElementsAre(SIGTERM));
  end_task({.exit_code = kTerminated});
  EXPECT_EQ(end_, std::pair(static_cast<int>(kError), 0)) << "not the task's code";
}

TEST_F(OwnProgramSupervisorTest, TheHintIsOnlyForFaultsOfMemory) {
  begin();
  for (int death = 0; death < kMostProgramDeaths; ++death) {
    end_program(program(), kProgramKilled);
    pass(seconds(1));
  }
  EXPECT_THAT(errors_,
              ElementsAre("the program was killed by signal 9 (Killed) 3 times without a step"));
}

TEST_F(OwnProgramSupervisorTest, AStepForgivesEarlierDeaths) {
  begin();
  for (int death = 0; death < 20; ++death) {
    send(ProgramKind::kSteady, handed_over_.back().second);
    end_program(program(), kProgramKilled);
    EXPECT_EQ(programs_.size(), static_cast<std::size_t>(death) + 2) << "at once each time";
  }
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, ADeathAfterAStepIsNotOneOfTheThree) {
  begin();
  // Two deaths without a step, one after a step, two without.
  for (const bool is_steady : {false, false, true, false, false}) {
    if (is_steady) {
      send(ProgramKind::kSteady, handed_over_.back().second);
    }
    end_program(program(), kProgramKilled);
    pass(seconds(1));
  }
  EXPECT_THAT(errors_, IsEmpty());
  end_program(program(), kProgramKilled);
  EXPECT_EQ(errors_.size(), 1U);
}

TEST_F(OwnProgramSupervisorTest, AStepOfAnEarlierProgramForgivesNothing) {
  begin();
  end_program(1, kProgramKilled);
  send(ProgramKind::kSteady, 1);
  end_program(2, kProgramKilled);
  pass(seconds(1));
  end_program(3, kProgramKilled);
  EXPECT_EQ(errors_.size(), 1U);
}

TEST_F(OwnProgramSupervisorTest, AProcessThatCannotBeMadeIsTriedAgainForAWhile) {
  cannot_start_ = true;
  begin();
  pass(seconds(30));
  EXPECT_THAT(warnings_, ElementsAre("the program cannot be started: no processes; trying again "
                                     "for up to 60 s"));
  cannot_start_ = false;
  pass(seconds(6));
  EXPECT_EQ(handed_over_.size(), 1U);
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, ASecondShortageHasItsOwnTime) {
  cannot_start_ = true;
  begin();
  pass(seconds(50));
  cannot_start_ = false;
  pass(seconds(6));
  cannot_start_ = true;
  end_program(program(), kProgramKilled);
  pass(seconds(50));
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, AProcessThatCannotBeMadeForLongEndsTheRun) {
  cannot_start_ = true;
  begin();
  pass(seconds(70));
  EXPECT_THAT(errors_, ElementsAre("the program could not be started: no processes"));
  EXPECT_THAT(task_signals_, ElementsAre(SIGTERM));
}

// --- A program that exits by itself

TEST_F(OwnProgramSupervisorTest, AProgramThatExitsIsNotStartedAgain) {
  begin();
  end_program(1, {.exit_code = 3});
  pass(kTaskReport);
  EXPECT_EQ(programs_.size(), 1U);
  EXPECT_THAT(errors_, ElementsAre("the program exited with 3 before the run was over; its last "
                                   "lines have the reason"));
  EXPECT_THAT(task_signals_, ElementsAre(SIGTERM));
  end_task({.exit_code = kTerminated});
  EXPECT_EQ(end_, std::pair(static_cast<int>(kError), 0));
}

TEST_F(OwnProgramSupervisorTest, AProgramMustNotLeaveEarly) {
  begin();
  end_program(1, {.exit_code = 0});
  pass(kTaskReport);
  EXPECT_THAT(errors_, ElementsAre("the program exited with 0 before the run was over: it must "
                                   "take part until its loop ends"));
}

TEST_F(OwnProgramSupervisorTest, AFileThatIsNoProgramIsNamedSo) {
  begin();
  end_program(1, {.exit_code = 126});
  pass(kTaskReport);
  EXPECT_THAT(errors_, ElementsAre("the program exited with 126 before the run was over: its file "
                                   "cannot be executed"));
}

TEST_F(OwnProgramSupervisorTest, ATaskThatSaysWhyKeepsItsCode) {
  begin();
  end_program(1, {.exit_code = 1});
  end_task({.exit_code = kUsage});  // it has refused the program, with a sentence of its own
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(end_, std::pair(static_cast<int>(kUsage), 0));
}

// --- A program that hangs

TEST_F(OwnProgramSupervisorTest, AHangingProgramPrintsItsStacksThenIsKilledAndStartedAgain) {
  begin();
  send(ProgramKind::kRestart, 1, SIGABRT);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGABRT)));
  pass(kStopGrace);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGKILL)));
  end_program(1, kProgramKilled);
  EXPECT_THAT(handed_over_, ElementsAre(Pair(1U, 1U), Pair(2U, 2U)));
  pass(seconds(10));
  EXPECT_THAT(take_signals(), IsEmpty()) << "the new one is not killed";
}

TEST_F(OwnProgramSupervisorTest, AHangingProgramThatExitsOnTheSignalIsStartedAgainToo) {
  begin();
  send(ProgramKind::kRestart, 1, SIGABRT);
  end_program(1, {.exit_code = 1});
  EXPECT_EQ(programs_.size(), 2U);
}

TEST_F(OwnProgramSupervisorTest, TheKillIsNotForTheNextProgram) {
  begin();
  send(ProgramKind::kRestart, 1, SIGABRT);
  end_program(1, {.signal = SIGABRT});
  take_signals();
  pass(seconds(10));
  EXPECT_THAT(take_signals(), IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, ASecondRequestDoesNotDelayTheKill) {
  begin();
  send(ProgramKind::kRestart, 1, SIGABRT);
  pass(seconds(3));
  send(ProgramKind::kRestart, 1, SIGABRT);
  pass(seconds(2));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGABRT), Pair(1U, SIGKILL)));
}

TEST_F(OwnProgramSupervisorTest, AProgramThatSavesAfterTheRunIsNotTakenForHanging) {
  begin();
  send(ProgramKind::kRelease, 1);
  send(ProgramKind::kRestart, 1, SIGABRT);
  EXPECT_THAT(take_signals(), IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, ALateRequestDoesNotConcernTheNextProgram) {
  begin();
  end_program(1, kProgramKilled);
  send(ProgramKind::kRestart, 1, SIGABRT);
  EXPECT_THAT(take_signals(), IsEmpty());
}

// --- The spare

TEST_F(OwnProgramSupervisorTest, ASpareIsStartedAfterTheFirstStep) {
  begin({.has_spare = true});
  EXPECT_THAT(spares_, IsEmpty());
  send(ProgramKind::kSteady, 1);
  EXPECT_THAT(spares_, ElementsAre(2U));
  EXPECT_EQ(handed_over_.size(), 1U) << "it waits";
}

TEST_F(OwnProgramSupervisorTest, TheSpareTakesOverAndIsReplacedAfterItsFirstStep) {
  begin({.has_spare = true});
  send(ProgramKind::kSteady, 1);
  end_program(1, kProgramKilled);
  EXPECT_THAT(handed_over_, ElementsAre(Pair(1U, 1U), Pair(2U, 2U)));
  EXPECT_THAT(warnings_,
              ElementsAre("the program was killed by signal 9 (Killed); the spare takes over"));
  EXPECT_EQ(spares_.size(), 1U);
  send(ProgramKind::kSteady, 2);
  EXPECT_THAT(spares_, ElementsAre(2U, 3U));
}

TEST_F(OwnProgramSupervisorTest, ThereIsOneSpare) {
  begin({.has_spare = true});
  send(ProgramKind::kSteady, 1);
  send(ProgramKind::kSteady, 1);
  EXPECT_EQ(spares_.size(), 1U);
}

TEST_F(OwnProgramSupervisorTest, ASpareWaitsForTheStepOfANewProgram) {
  begin({.has_spare = true});
  send(ProgramKind::kSteady, 1);
  end_program(2, kProgramKilled);  // the spare
  end_program(1, kProgramKilled);
  pass(kSpareDelay);
  EXPECT_EQ(spares_.size(), 1U);
  send(ProgramKind::kSteady, 2);
  EXPECT_EQ(spares_.size(), 2U);
}

TEST_F(OwnProgramSupervisorTest, NoSpareWithoutTheFlag) {
  begin({.has_spare = false});
  send(ProgramKind::kSteady, 1);
  EXPECT_THAT(spares_, IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, ASpareThatDiesIsReplacedLaterAndNotForEver) {
  begin({.has_spare = true});
  send(ProgramKind::kSteady, 1);
  end_program(2, {.exit_code = 1});
  EXPECT_EQ(spares_.size(), 1U);
  pass(kSpareDelay);
  EXPECT_EQ(spares_.size(), 2U);
  end_program(spares_.back(), {.exit_code = 1});
  pass(kSpareDelay);
  end_program(spares_.back(), {.exit_code = 1});
  pass(seconds(100));
  EXPECT_EQ(spares_.size(), 3U);
  EXPECT_THAT(take_warnings(),
              ElementsAre("the spare of the program ended with exit code 1, 3 times before it was "
                          "used; going on without one"));
  end_program(1, kProgramKilled);
  send(ProgramKind::kSteady, 2);
  EXPECT_EQ(spares_.size(), 3U);
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, ASpareThatWasUsedForgivesThoseThatDied) {
  begin({.has_spare = true});
  for (std::uint64_t number = 1; number < 8; ++number) {
    send(ProgramKind::kSteady, number);
    end_program(spares_.back(), kProgramKilled);
    pass(kSpareDelay);
    end_program(handed_over_.back().first, kProgramKilled);
  }
  EXPECT_EQ(spares_.size(), 14U);
  EXPECT_EQ(programs_.size(), 1U) << "a spare took over each time";
}

// --- The end of the run

TEST_F(OwnProgramSupervisorTest, AfterTheRunTheProgramMaySaveWhatItWants) {
  begin({.has_spare = true});
  send(ProgramKind::kSteady, 1);
  send(ProgramKind::kRelease, 1);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2U, SIGKILL))) << "the spare is not needed any more";
  end_program(2, kProgramKilled);
  end_task({.exit_code = kDone});
  EXPECT_THAT(take_signals(), IsEmpty());
  EXPECT_FALSE(end_.has_value());
  pass(kLongEnd);
  EXPECT_THAT(warnings_, ElementsAre("the program has not ended 60 s after the run was over; "
                                     "waiting for it for up to 600 s"));
  end_program(1, {.exit_code = 0});
  EXPECT_EQ(end_, std::pair(static_cast<int>(kDone), 0));
}

// Its predecessor was killed as the run ended. Without its task it exits with an error.
TEST_F(OwnProgramSupervisorTest, AProgramThatIsNotToldTheEndOfTheRunIsEnded) {
  begin();
  send(ProgramKind::kSteady, 1);
  end_program(1, kProgramKilled);
  send(ProgramKind::kRelease, 1);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2U, SIGTERM)));
  end_task({.exit_code = kDone});
  end_program(2, {.exit_code = 1});
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(end_, std::pair(static_cast<int>(kDone), 0));
}

TEST_F(OwnProgramSupervisorTest, AProgramThatWasNotWelcomedIsEndedWithTheRun) {
  begin();
  send(ProgramKind::kRelease, 1, /*signal: no END follows*/ 1);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
}

TEST_F(OwnProgramSupervisorTest, AProgramThatFailsAfterTheRunIsAnError) {
  begin();
  send(ProgramKind::kRelease, 1);
  end_program(1, {.exit_code = 5});
  EXPECT_EQ(programs_.size(), 1U) << "it is not started again";
  end_task({.exit_code = kDone});
  EXPECT_THAT(errors_, ElementsAre("the program ended with exit code 5 after the run was over"));
  EXPECT_EQ(end_, std::pair(static_cast<int>(kError), 0));
}

TEST_F(OwnProgramSupervisorTest, AProgramThatIsKilledAfterTheRunIsNotStartedAgain) {
  begin();
  send(ProgramKind::kRelease, 1);
  end_program(1, kProgramKilled);
  pass(seconds(10));
  EXPECT_EQ(programs_.size(), 1U);
  EXPECT_THAT(errors_,
              ElementsAre("the program was killed by signal 9 (Killed) after the run was over"));
}

TEST_F(OwnProgramSupervisorTest, AProgramThatHasLeftBeforeTheReleaseCameHasNotLeftEarly) {
  begin();
  end_program(1, {.exit_code = 0});
  send(ProgramKind::kRelease, 1);
  pass(kTaskReport);
  end_task({.exit_code = kDone});
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(end_, std::pair(static_cast<int>(kDone), 0));
}

TEST_F(OwnProgramSupervisorTest, AProgramThatDoesNotEndIsEnded) {
  begin({.has_spare = false, .end_timeout = seconds(90)});
  send(ProgramKind::kRelease, 1);
  end_task({.exit_code = kDone});
  pass(seconds(90));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
  pass(kStopGrace);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGKILL)));
  end_program(1, kProgramKilled);
  EXPECT_THAT(errors_, ElementsAre("the program did not end within 90 s after the run was over; "
                                   "ending it"));
  EXPECT_EQ(end_, std::pair(static_cast<int>(kError), 0));
}

TEST_F(OwnProgramSupervisorTest, ATaskThatIdlesAfterTheRunWaitsForNothing) {
  begin({.has_spare = true});
  send(ProgramKind::kSteady, 1);
  send(ProgramKind::kRelease, 1);
  end_program(2, kProgramKilled);  // the spare
  end_program(1, {.exit_code = 0});
  take_signals();
  pass(std::chrono::hours(100));
  EXPECT_THAT(take_signals(), IsEmpty());
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_EQ(spares_.size(), 1U);
  EXPECT_FALSE(end_.has_value());
}

TEST_F(OwnProgramSupervisorTest, AProgramMayTakeForEverWithoutALimit) {
  begin({.has_spare = false, .end_timeout = seconds(0)});
  send(ProgramKind::kRelease, 1);
  end_task({.exit_code = kDone});
  pass(std::chrono::hours(100));
  EXPECT_THAT(take_signals(), IsEmpty());
}

// --- The end of the task

TEST_F(OwnProgramSupervisorTest, TheEndOfTheTaskEndsTheProgram) {
  begin({.has_spare = true});
  send(ProgramKind::kSteady, 1);
  end_task({.exit_code = kLostPeers});
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2U, SIGKILL), Pair(1U, SIGTERM)));
  end_program(2, kProgramKilled);
  EXPECT_FALSE(end_.has_value());
  pass(kStopGrace);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGKILL)));
  end_program(1, kProgramKilled);
  EXPECT_EQ(end_, std::pair(static_cast<int>(kLostPeers), 0));
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, WaitsForTheSpareToo) {
  begin({.has_spare = true});
  send(ProgramKind::kSteady, 1);
  end_task({.exit_code = kLostPeers});
  end_program(1, {.signal = SIGTERM});
  EXPECT_FALSE(end_.has_value());
  end_program(2, kProgramKilled);
  EXPECT_TRUE(end_.has_value());
}

TEST_F(OwnProgramSupervisorTest, ATaskThatEndsWithoutAReleaseEndsTheProgram) {
  begin();
  end_task({.exit_code = kDone});
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
}

TEST_F(OwnProgramSupervisorTest, ASpareIsNotReplacedAfterAFailure) {
  begin({.has_spare = true});
  send(ProgramKind::kSteady, 1);
  for (int death = 0; death < 2; ++death) {
    end_program(spares_.back(), kProgramKilled);
    pass(kSpareDelay);
  }
  end_program(1, {.exit_code = 3});
  pass(kTaskReport);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(spares_.back(), SIGKILL)));
  end_program(spares_.back(), kProgramKilled);
  pass(2 * kSpareDelay);
  EXPECT_EQ(spares_.size(), 3U);
  EXPECT_THAT(warnings_, IsEmpty()) << "it was killed on purpose";
}

TEST_F(OwnProgramSupervisorTest, ATaskThatFailsAfterTheReleaseEndsTheProgramToo) {
  begin();
  send(ProgramKind::kRelease, 1);
  end_task({.exit_code = kError});
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
  end_program(1, {.signal = SIGTERM});
  EXPECT_EQ(end_, std::pair(static_cast<int>(kError), 0));
}

TEST_F(OwnProgramSupervisorTest, DiesOfTheSignalThatKilledTheTask) {
  begin();
  end_task({.signal = SIGSEGV});
  end_program(1, {.signal = SIGTERM});
  EXPECT_EQ(end_, std::pair(0, SIGSEGV));
}

TEST_F(OwnProgramSupervisorTest, ATaskThatDoesNotEndAfterAFailureIsKilled) {
  begin();
  end_program(1, {.exit_code = 3});
  pass(kTaskReport + kTaskGrace);
  EXPECT_THAT(task_signals_, ElementsAre(SIGTERM, SIGKILL));
  end_task(kProgramKilled);
  EXPECT_EQ(end_, std::pair(static_cast<int>(kError), 0)) << "not a signal, which means a restart";
}

// --- Signals

TEST_F(OwnProgramSupervisorTest, ASignalEndsTheTaskAndThenTheProgram) {
  for (const int signal : {SIGTERM, SIGINT}) {
    programs_.clear();
    task_signals_.clear();
    end_.reset();
    begin();
    stop(signal);
    EXPECT_THAT(task_signals_, ElementsAre(signal));
    EXPECT_THAT(take_signals(), IsEmpty()) << "the task may need it while it ends";
    end_task({.exit_code = 128 + signal});
    EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
    end_program(1, {.signal = SIGTERM});
    EXPECT_EQ(end_, std::pair(128 + signal, 0));
  }
}

// As with an engine that signals all processes of a container.
TEST_F(OwnProgramSupervisorTest, AProgramThatTheSignalKillsTooIsNotStartedAgain) {
  begin();
  stop(SIGTERM);
  end_program(1, {.signal = SIGTERM});
  pass(seconds(10));
  EXPECT_EQ(programs_.size(), 1U);
  EXPECT_EQ(told_.size(), 1U);
  end_task({.exit_code = kTerminated});
  EXPECT_EQ(end_, std::pair(static_cast<int>(kTerminated), 0));
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, ASignalEndsAProgramThatSavesBesideAnIdleTask) {
  begin();
  send(ProgramKind::kRelease, 1);
  stop(SIGTERM);
  end_task({.exit_code = kDone});
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
  end_program(1, {.signal = SIGTERM});
  EXPECT_EQ(end_, std::pair(static_cast<int>(kDone), 0));
}

TEST_F(OwnProgramSupervisorTest, ASignalAfterTheTaskEndsAProgramThatSaves) {
  begin();
  send(ProgramKind::kRelease, 1);
  end_task({.exit_code = kDone});
  stop(SIGTERM);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
  end_program(1, {.signal = SIGTERM});
  EXPECT_EQ(end_, std::pair(static_cast<int>(kDone), 0)) << "the run had its result";
}

TEST_F(OwnProgramSupervisorTest, AnUnknownMessageHasNoEffect) {
  begin();
  send(static_cast<ProgramKind>(999), 1);
  EXPECT_THAT(take_signals(), IsEmpty());
  EXPECT_EQ(core_->deadline(), Core::TimePoint::max());
}

}  // namespace
}  // namespace disttf::roles
