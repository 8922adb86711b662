// The tasks of a launch in time that the test makes: no process is started.
#include "roles/launch/core/supervisor.h"

#include <gmock/gmock.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "roles/launch/core/rolling_update.h"
#include "run/outcome.h"
#include "tests/roles/virtual_time.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Part = RestartPolicy::Part;

constexpr Ending kTaskFinished{.exit_code = kDone};
constexpr Ending kTaskKilled{.signal = SIGKILL};
constexpr Ending kTaskRefused{.exit_code = kUsage};

// Task 0 is the ps, 1 the chief, 2 a worker.
class SupervisorTest : public testing::Test {
 protected:
  using TimePoint = Supervisor::TimePoint;

  explicit SupervisorTest(bool saves = false, const RestartOptions& options = {})
      : core_(options, saves, std::mt19937_64(7)) {
    core_.add("[ps:0]", Part::kPs);
    core_.add("[worker:0]", Part::kChief);
    core_.add("[worker:1]", Part::kWorker);
    for (std::size_t task = 0; task < 3; ++task) {
      core_.started(task, now_);
    }
    take_effects();
  }

  void take_effects() {
    core_.effects().drain([this](const auto& effect) { take(effect); });
  }
  void take(const StartTask& effect) {
    if (cannot_start_) {
      core_.could_not_start(effect.task, "no ports", now_);
      return;
    }
    started_.push_back(effect.task);
    core_.started(effect.task, now_);
  }
  void take(const SignalTask& effect) { signals_.emplace_back(effect.task, effect.signal); }
  void take(const MoveTask& effect) { moved_.push_back(effect.task); }
  static void take(const TaskChanged& /*effect*/) {}
  void take(const SayLine& effect) { lines_.push_back(effect.text); }
  void take(const AllEnded& /*effect*/) { all_ended_ = true; }
  void take(const AllGone& /*effect*/) { all_gone_ = true; }

  void end(std::size_t task, const Ending& ending) {
    core_.ended(task, ending, now_);
    core_.reaped(now_);
    take_effects();
  }
  // Until then, each deadline in its turn.
  void pass(milliseconds time) {
    pass_time(core_, now_, now_ + time, [this] { take_effects(); });
  }
  std::vector<std::pair<std::size_t, int>> take_signals() { return std::exchange(signals_, {}); }

  TimePoint now_{std::chrono::hours(1)};
  Supervisor core_;
  std::vector<std::size_t> started_;
  std::vector<std::pair<std::size_t, int>> signals_;
  std::vector<std::size_t> moved_;
  std::vector<std::string> lines_;
  bool all_ended_ = false;
  bool all_gone_ = false;
  bool cannot_start_ = false;
};

class SavingSupervisorTest : public SupervisorTest {
 protected:
  SavingSupervisorTest() : SupervisorTest(/*saves=*/true) {}
};

TEST_F(SupervisorTest, ATaskThatIsKilledIsStartedAgainAfterAPause) {
  end(2, kTaskKilled);
  EXPECT_THAT(started_, IsEmpty());
  EXPECT_TRUE(core_.tasks()[2].waits);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("[worker:1] was killed by signal 9 (Killed); starting "
                                            "it again (1 of 10 restarts)")));
  pass(milliseconds(100));
  EXPECT_THAT(started_, ElementsAre(2));
  EXPECT_EQ(core_.tasks()[2].restarts, 1U);
  EXPECT_EQ(core_.deadline(), TimePoint::max()) << "nothing is left to wait for";
}

TEST_F(SupervisorTest, TheBudgetOfRestartsIsTheJobs) {
  for (int each = 0; each < 10; ++each) {
    end(each % 2 == 0 ? 2 : 0, kTaskKilled);
    pass(seconds(5));
  }
  EXPECT_EQ(started_.size(), 10U);
  end(2, kTaskKilled);
  EXPECT_EQ(core_.policy().exit_code(), kLostPeers);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM)));
}

TEST_F(SupervisorTest, AFailureThatIsForGoodStopsTheOthersAndKillsThoseThatStay) {
  end(2, kTaskRefused);
  EXPECT_EQ(core_.policy().exit_code(), kUsage);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM)));
  end(0, {.signal = SIGTERM});
  EXPECT_FALSE(all_gone_);
  pass(kStopGrace);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1, SIGKILL)));
  EXPECT_EQ(lines_.back(), "[worker:0] did not end within 5 s; killing it");
  end(1, kTaskKilled);
  EXPECT_TRUE(all_gone_);
  EXPECT_THAT(started_, IsEmpty());
}

TEST_F(SupervisorTest, WhatTheyHavePrintedIsReadBeforeTheLaunchEnds) {
  core_.pipes_opened(2);
  for (const std::size_t task : {1U, 0U, 2U}) {
    end(task, kTaskFinished);
  }
  EXPECT_FALSE(all_gone_);
  core_.pipe_ended();
  core_.pipe_ended();
  take_effects();
  EXPECT_TRUE(all_gone_);
  EXPECT_EQ(core_.policy().exit_code(), kDone);
}

TEST_F(SupervisorTest, AfterTheResultRemainingTasksAreKilledAndNoneIsRestarted) {
  end(2, kTaskKilled);  // waits to be started again
  end(1, kTaskFinished);
  pass(seconds(9));
  EXPECT_THAT(started_, IsEmpty());
  EXPECT_THAT(take_signals(), IsEmpty());
  pass(seconds(1));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGKILL)));
  end(0, kTaskKilled);
  EXPECT_TRUE(all_gone_);
  EXPECT_EQ(core_.policy().exit_code(), kDone);
}

// A worker evaluates the result once the chief has done so: it is not to be taken for one that
// hangs.
TEST_F(SupervisorTest, AfterTheResultWorkersHaveTheTimeToEvaluateIt) {
  core_.evaluation_begins(now_);
  pass(seconds(20));
  end(1, kTaskFinished);
  pass(seconds(69));
  EXPECT_THAT(take_signals(), IsEmpty());
  pass(seconds(1));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGKILL), Pair(2, SIGKILL)));
  EXPECT_EQ(lines_.back(), "[worker:1] did not end within 70 s; killing it");
}

// A program may take long to save what it has trained.
class SupervisorOfProgramsTest : public SupervisorTest {
 protected:
  SupervisorOfProgramsTest() : SupervisorTest(false, {.programs_end = seconds(600)}) {}
};

TEST_F(SupervisorOfProgramsTest, AfterTheResultProgramsHaveTheirTimeToEnd) {
  end(1, kTaskFinished);
  pass(seconds(10));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2, kRunOverSignal)));
  pass(seconds(599));
  EXPECT_THAT(take_signals(), IsEmpty());
  pass(seconds(1));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGKILL), Pair(2, SIGKILL)));
}

// The worker that was started again a moment before the end cannot join any more.
TEST_F(SupervisorOfProgramsTest, NobodyIsNotifiedOfTheEndOnceAllHaveEnded) {
  end(2, kTaskKilled);
  pass(seconds(1));
  end(1, kTaskFinished);
  end(0, kTaskFinished);
  end(2, kTaskFinished);
  EXPECT_TRUE(all_gone_);
  EXPECT_EQ(core_.deadline(), TimePoint::max());
}

TEST_F(SupervisorTest, ATaskThatCannotBeStartedForAMinuteEndsTheRun) {
  end(2, kTaskKilled);
  cannot_start_ = true;
  pass(seconds(50));
  ASSERT_EQ(lines_.size(), 2U) << "each try is no line of its own";
  EXPECT_THAT(lines_.back(),
              HasSubstr("[worker:1] cannot be started: no ports; trying again for up to 60 s"));
  EXPECT_FALSE(core_.policy().exit_code());
  for (int each = 0; each < 20 && !core_.policy().exit_code(); ++each) pass(seconds(1));
  EXPECT_THAT(lines_.back(), HasSubstr("[worker:1] could not be started for 60 s: no ports; "
                                       "stopping the others"));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM)));
  EXPECT_EQ(core_.policy().exit_code(), kError);
}

// A limit on processes that others use up for a moment (EAGAIN).
TEST_F(SupervisorTest, ATaskThatCannotBeStartedForAMomentIsStartedAfterAll) {
  end(2, kTaskKilled);
  cannot_start_ = true;
  pass(seconds(10));
  EXPECT_THAT(started_, IsEmpty());
  cannot_start_ = false;
  pass(seconds(6));
  EXPECT_THAT(started_, ElementsAre(2));
  EXPECT_THAT(lines_.back(), HasSubstr("[worker:1] has been started after failed attempts"));
  EXPECT_EQ(core_.tasks()[2].restarts, 1U);
  EXPECT_EQ(core_.deadline(), TimePoint::max());
}

TEST_F(SupervisorTest, ATaskThatCannotBeStartedIsGivenUpWithTheRun) {
  end(2, kTaskKilled);
  cannot_start_ = true;
  pass(seconds(10));
  core_.stop(kTerminated, SIGTERM, now_);
  take_effects();
  end(0, kTaskKilled);
  end(1, kTaskKilled);
  EXPECT_TRUE(all_gone_);
  EXPECT_EQ(core_.policy().exit_code(), kTerminated);
}

TEST_F(SupervisorTest, MemoryIsNamedWhereItMayBeWhy) {
  core_.set_memory(2, 64);
  end(2, kTaskRefused);
  EXPECT_THAT(lines_.back(), HasSubstr("[worker:1] had a limit of 64 MiB of private memory"));
}

// ---- signals ----

TEST_F(SupervisorTest, ASignalEndsAllAtOnceWhereNothingIsSaved) {
  EXPECT_FALSE(core_.stop(kInterrupted, SIGINT, now_));
  take_effects();
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGINT), Pair(1, SIGINT), Pair(2, SIGINT)));
  EXPECT_EQ(core_.policy().exit_code(), kInterrupted);
}

TEST_F(SavingSupervisorTest, TheChiefSavesBeforeTheOthersAreTold) {
  end(2, kTaskKilled);
  EXPECT_TRUE(core_.stop(kTerminated, SIGTERM, now_));
  take_effects();
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1, SIGTERM)));
  pass(seconds(4));
  EXPECT_THAT(started_, IsEmpty()) << "the worker is not started again";
  end(1, {.exit_code = kTerminated});
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGTERM)));
  end(0, {.signal = SIGTERM});
  EXPECT_TRUE(all_gone_);
  EXPECT_EQ(core_.policy().exit_code(), kTerminated);
}

TEST_F(SavingSupervisorTest, AChiefThatDoesNotEndIsKilledThenTheOthersAreTold) {
  core_.stop(kTerminated, SIGTERM, now_);
  take_effects();
  take_signals();
  pass(kStopGrace);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1, SIGKILL)));
  end(1, kTaskKilled);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGTERM), Pair(2, SIGTERM)));
}

TEST_F(SavingSupervisorTest, WithAPsTheStateIsLostAndNoTaskWaits) {
  end(0, kTaskRefused);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1, SIGTERM), Pair(2, SIGTERM)));
}

TEST_F(SavingSupervisorTest, ASecondSignalKillsAll) {
  core_.stop(kTerminated, SIGTERM, now_);
  core_.kill_all();
  take_effects();
  EXPECT_THAT(take_signals(),
              ElementsAre(Pair(1, SIGTERM), Pair(0, SIGKILL), Pair(1, SIGKILL), Pair(2, SIGKILL)));
}

// ---- chaos ----

TEST_F(SupervisorTest, WhatLaunchKillsForTheSakeOfItIsNotCounted) {
  core_.kill_task(2);
  take_effects();
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2, SIGKILL)));
  end(2, kTaskKilled);
  EXPECT_THAT(lines_.back(), HasSubstr("as planned; starting it again"));
}

TEST_F(SupervisorTest, AFrozenTaskThawsAfterItsTimeOrWhenItIsToEnd) {
  core_.freeze(2, seconds(3), now_);
  take_effects();
  pass(seconds(2));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2, SIGSTOP)));
  pass(seconds(1));
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2, SIGCONT)));
  core_.freeze(2, seconds(3), now_);
  core_.stop(kInterrupted, SIGINT, now_);
  take_effects();
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2, SIGSTOP), Pair(0, SIGINT), Pair(1, SIGINT),
                                          Pair(2, SIGINT), Pair(2, SIGCONT)));
}

// ---- restarts that are asked for ----

TEST_F(SupervisorTest, ATaskThatIsToRestartAndDoesNotEndIsKilled) {
  core_.restart(2, now_);
  take_effects();
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2, SIGTERM)));
  pass(kStopGrace);
  EXPECT_THAT(take_signals(), ElementsAre(Pair(2, SIGKILL)));
  end(2, kTaskKilled);
  pass(milliseconds(100));
  EXPECT_THAT(started_, ElementsAre(2));
  EXPECT_THAT(moved_, IsEmpty());
}

TEST_F(SupervisorTest, ATaskThatWaitsIsStartedAtOnceWhenItIsAskedFor) {
  end(2, kTaskKilled);
  core_.restart(2, now_);
  pass(milliseconds(0));
  EXPECT_THAT(started_, ElementsAre(2));
}

TEST_F(SupervisorTest, OnlyAWorkerThatIsReplacedMoves) {
  for (const std::size_t task : {0U, 1U, 2U}) {
    core_.replace(task, now_);
    end(task, kTaskKilled);
    pass(milliseconds(100));
  }
  EXPECT_THAT(moved_, ElementsAre(2));
  EXPECT_THAT(started_, ElementsAre(0, 1, 2));
}

TEST_F(SavingSupervisorTest, AllStartAgainAfterTheChiefHasSaved) {
  core_.restart_all(now_);
  take_effects();
  EXPECT_THAT(take_signals(), ElementsAre(Pair(1, SIGTERM)));
  end(1, {.exit_code = kTerminated});
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGTERM), Pair(2, SIGTERM)));
  end(0, {.signal = SIGTERM});
  EXPECT_FALSE(all_ended_);
  end(2, {.signal = SIGTERM});
  EXPECT_TRUE(all_ended_);
  EXPECT_TRUE(core_.may_start());
  EXPECT_FALSE(all_gone_);
  EXPECT_THAT(started_, IsEmpty()) << "the requester starts the tasks again";
  core_.started(0, now_);
  EXPECT_EQ(core_.tasks()[0].restarts, 1U);
}

TEST_F(SavingSupervisorTest, ARunThatIsStoppedWhileAllEndIsOver) {
  core_.restart_all(now_);
  end(1, {.exit_code = kTerminated});
  core_.stop(kTerminated, SIGTERM, now_);
  end(0, {.signal = SIGTERM});
  end(2, {.signal = SIGTERM});
  EXPECT_TRUE(all_ended_);
  EXPECT_TRUE(all_gone_);
  EXPECT_FALSE(core_.may_start());
}

// ---- rolling updates ----

class RollingUpdateTest : public SupervisorTest {
 protected:
  // The task that was signalled ends, and its next process starts.
  void come_back(std::size_t task) {
    take_effects();
    EXPECT_THAT(take_signals(), ElementsAre(Pair(task, SIGTERM)));
    end(task, {.signal = SIGTERM});
    pass(milliseconds(100));
    EXPECT_EQ(roll_.task_changed(now_), std::nullopt);
  }

  RollingUpdate roll_{core_};
};

TEST_F(RollingUpdateTest, OneTaskAfterTheOtherOnceTheRunHasGoneOn) {
  roll_.begin(now_);
  std::uint64_t step = 100;
  for (const std::size_t task : {0U, 1U, 2U}) {
    come_back(task);
    roll_.stepped(step, now_);  // may have been half made without it
    roll_.stepped(step + 1, now_);
    EXPECT_TRUE(roll_.is_under_way());
    take_effects();
    EXPECT_THAT(take_signals(), IsEmpty());
    step += 2;
    const auto sentence = roll_.stepped(step, now_);
    EXPECT_EQ(sentence.value_or(""), task == 2 ? "update: done" : "");
  }
  EXPECT_FALSE(roll_.is_under_way());
}

TEST_F(RollingUpdateTest, StepsBeforeItIsBackDoNotCount) {
  roll_.begin(now_);
  take_effects();
  for (std::uint64_t step = 100; step < 110; ++step) {
    roll_.stepped(step, now_);
  }
  EXPECT_THAT(take_signals(), ElementsAre(Pair(0, SIGTERM)));
}

TEST_F(RollingUpdateTest, ARunThatDoesNotGoOnEndsTheUpdate) {
  roll_.begin(now_);
  come_back(0);
  roll_.stepped(100, now_);
  EXPECT_EQ(roll_.time(roll_.deadline() - milliseconds(1)), std::nullopt);
  EXPECT_EQ(roll_.time(roll_.deadline()).value_or(""),
            "update: the run did not resume within 60 s of the restart of [ps:0]; later tasks get "
            "the new settings when they restart");
  EXPECT_FALSE(roll_.is_under_way());
}

TEST_F(RollingUpdateTest, ARunThatEndsEndsTheUpdateWithoutAWord) {
  roll_.begin(now_);
  core_.stop(kInterrupted, SIGINT, now_);
  EXPECT_EQ(roll_.task_changed(now_), std::nullopt);
  EXPECT_FALSE(roll_.is_under_way());
}

}  // namespace
}  // namespace disttf::roles
