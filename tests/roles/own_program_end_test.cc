// How a task and a user's program end: the run is over, the task ends, or a signal comes.
#include <gmock/gmock.h>

#include <csignal>
#include <utility>

#include "run/outcome.h"
#include "tests/roles/own_program_supervisor_fixture.h"

namespace disttf::roles {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

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

TEST_F(OwnProgramSupervisorTest, AProgramThatCouldNotBeToldTheEndOfTheRunIsMentioned) {
  begin();
  end_program(1, kProgramKilled);
  end_program(2, kProgramKilled);  // the next start waits
  take_warnings();
  send(ProgramKind::kRelease, 2);
  pass(seconds(10));
  EXPECT_EQ(programs_.size(), 2U);
  EXPECT_THAT(warnings_, ElementsAre("the run ended while the program was started again: what "
                                     "follows its loop was not run"));
}

TEST_F(OwnProgramSupervisorTest, AProgramThatWasNotWelcomedIsEndedWithTheRun) {
  begin();
  send(ProgramKind::kRelease, 1, /*signal: no END follows*/ 1);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
}

// It was started as the run ended, and its task waits for ps that have ended.
TEST_F(OwnProgramSupervisorTest, ATaskThatCannotRejoinTheRunIsEnded) {
  begin();
  run_over();
  EXPECT_THAT(task_signals_, ElementsAre(SIGTERM));
  EXPECT_THAT(warnings_, ElementsAre("the run ended before this task could rejoin it: what follows "
                                     "the program's loop was not run"));
  end_task({.exit_code = kTerminated});
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
  end_program(1, {.signal = SIGTERM});
  EXPECT_EQ(end_, std::pair(static_cast<int>(kTerminated), 0));
}

TEST_F(OwnProgramSupervisorTest, ATaskThatHasTakenPartInTheEndOfTheRunMayTakeItsTime) {
  begin();
  send(ProgramKind::kRelease, 1);
  run_over();
  end_task({.exit_code = kDone});
  run_over();
  EXPECT_THAT(task_signals_, IsEmpty());
  EXPECT_THAT(take_signals(), IsEmpty());
  EXPECT_THAT(warnings_, IsEmpty());
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

TEST_F(OwnProgramSupervisorTest, TimeInWhichTheSupervisorIsSuspendedDoesNotCount) {
  begin({.has_spare = false, .end_timeout = seconds(90)});
  send(ProgramKind::kRelease, 1);
  end_task({.exit_code = kDone});
  pass(seconds(50));
  now_ += std::chrono::hours(1);
  core_->forgive(std::chrono::hours(1));
  pass(seconds(39));
  EXPECT_THAT(take_signals(), IsEmpty());
  pass(seconds(1));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
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

TEST_F(OwnProgramSupervisorTest, ATaskThatDoesNotEndOnASignalIsKilled) {
  begin();
  stop(SIGTERM);
  pass(kStoppedTaskGrace / 2);
  stop(SIGTERM);
  pass(kStoppedTaskGrace / 2);
  EXPECT_THAT(task_signals_, ElementsAre(SIGTERM, SIGTERM, SIGKILL));
  EXPECT_THAT(take_warnings(), ElementsAre("the task did not end in time; killing it"));
  end_task(kProgramKilled);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1U, SIGTERM)));
  end_program(1, {.signal = SIGTERM});
  EXPECT_EQ(end_, std::pair(static_cast<int>(kError), 0)) << "not a signal, which means a restart";
}

TEST_F(OwnProgramSupervisorTest, ATaskThatEndsInTimeIsNotSaidToBeLate) {
  begin();
  stop(SIGTERM);
  end_task({.exit_code = kTerminated});
  pass(kStoppedTaskGrace);
  EXPECT_THAT(warnings_, IsEmpty());
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
