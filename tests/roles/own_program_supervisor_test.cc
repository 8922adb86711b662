// What becomes of a user's program that is killed, exits or hangs during the run, and of its spare.
#include <gmock/gmock.h>

#include <csignal>
#include <utility>

#include "run/outcome.h"
#include "tests/roles/own_program_supervisor_fixture.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

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

// A program that writes to its parameters after each step would be started for ever.
TEST_F(OwnProgramSupervisorTest, GivesUpAfterTenFaultsWithinFewSteps) {
  begin();
  for (int death = 0; death < kMostFaults; ++death) {
    EXPECT_THAT(errors_, IsEmpty());
    send(ProgramKind::kSteady, handed_over_.back().second);
    end_program(program(), kProgramKilled);  // counts for nothing
    send(ProgramKind::kSteady, handed_over_.back().second);
    end_program(program(), {.signal = SIGSEGV});
  }
  EXPECT_THAT(errors_, ElementsAre("the program was killed by signal 11 (Segmentation fault) 10 "
                                   "times, each time within its first 100 steps; parameters are "
                                   "read-only for it: a write there is a segmentation fault"));
  EXPECT_EQ(warnings_.at(1),
            "the program was killed by signal 11 (Segmentation fault); starting it again; "
            "parameters are read-only for it: a write there is a segmentation fault");
}

TEST_F(OwnProgramSupervisorTest, FaultsOfProgramsThatHaveMadeManyStepsAreNotCounted) {
  begin();
  for (int death = 0; death < 3 * kMostFaults; ++death) {
    send(ProgramKind::kSteady, handed_over_.back().second);
    if (death % 3 == 0) {
      send(ProgramKind::kSteady, handed_over_.back().second);
    }
    end_program(program(), {.signal = SIGSEGV});
  }
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(OwnProgramSupervisorTest, AnAbortOfAHangingProgramIsNotItsFault) {
  begin();
  for (int death = 0; death < 2 * kMostFaults; ++death) {
    send(ProgramKind::kSteady, handed_over_.back().second);
    send(ProgramKind::kRestart, handed_over_.back().second, SIGABRT);
    end_program(program(), {.signal = SIGABRT});
  }
  EXPECT_THAT(errors_, IsEmpty());
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
                                   "cannot be executed, or it chose this code"));
}

TEST_F(OwnProgramSupervisorTest, AProgramThatHasRunCouldBeExecuted) {
  begin();
  send(ProgramKind::kSteady, 1);
  end_program(1, {.exit_code = 126});
  pass(kTaskReport);
  EXPECT_THAT(errors_, ElementsAre("the program exited with 126 before the run was over; its last "
                                   "lines have the reason"));
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

TEST_F(OwnProgramSupervisorTest, GivesUpAfterThreeThatHangWithoutAStep) {
  begin();
  for (int death = 0; death < kMostProgramDeaths; ++death) {
    send(ProgramKind::kRestart, handed_over_.back().second, SIGABRT);
    end_program(program(), {.signal = SIGABRT});
    pass(seconds(1));
  }
  EXPECT_THAT(errors_, ElementsAre("the program hung 3 times without a step; see "
                                   "--program_timeout_secs"));
  EXPECT_THAT(task_signals_, ElementsAre(SIGTERM));
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
  core_->program_spoke(2);
  end_program(1, kProgramKilled);
  EXPECT_THAT(handed_over_, ElementsAre(Pair(1U, 1U), Pair(2U, 2U)));
  EXPECT_THAT(warnings_,
              ElementsAre("the program was killed by signal 9 (Killed); the spare takes over"));
  EXPECT_EQ(spares_.size(), 1U);
  send(ProgramKind::kSteady, 2);
  EXPECT_THAT(spares_, ElementsAre(2U, 3U));
}

TEST_F(OwnProgramSupervisorTest, ASpareThatIsStillStartingIsSaidToBe) {
  begin({.has_spare = true});
  core_->program_spoke(1);
  send(ProgramKind::kSteady, 1);
  core_->program_spoke(1);
  end_program(1, kProgramKilled);
  EXPECT_THAT(take_warnings(), ElementsAre("the program was killed by signal 9 (Killed); the "
                                           "spare, still starting, takes over"));
  send(ProgramKind::kSteady, 2);
  core_->program_spoke(3);
  end_program(2, kProgramKilled);
  take_warnings();
  // That one was ready; the next one is not yet.
  send(ProgramKind::kSteady, 3);
  end_program(3, kProgramKilled);
  EXPECT_THAT(take_warnings(), ElementsAre("the program was killed by signal 9 (Killed); the "
                                           "spare, still starting, takes over"));
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

}  // namespace
}  // namespace disttf::roles
