// Replicated programs in time that the test makes: no process is started.
#include "roles/launch/core/program_supervisor.h"

#include <gmock/gmock.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "roles/launch/core/supervisor.h"
#include "run/outcome.h"
#include "tests/roles/virtual_time.h"

namespace disttf::roles {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr Ending kPartDone{.exit_code = kDone};
constexpr Ending kPartFailed{.exit_code = 7};

// Task 0 is a ps, 1 and 2 are workers. Each part that is started opens a pipe.
class ProgramSupervisorTest : public testing::Test {
 protected:
  using TimePoint = ProgramSupervisor::TimePoint;

  // Each task has all three parts, or its command alone.
  void begin(bool all_parts) {
    const std::array<bool, kProgramParts> has = {all_parts, true, all_parts};
    core_.add("[ps:0]", false, has);
    core_.add("[worker:0]", true, has);
    core_.add("[worker:1]", true, has);
    core_.begin();
    take_effects();
  }
  void take_effects() {
    core_.effects().drain([this](const auto& effect) { take(effect); });
  }
  void take(const StartPart& effect) {
    if (cannot_start_) {
      core_.could_not_start(effect.task, "no processes", now_);
      return;
    }
    core_.started(effect.task);
    core_.pipes_opened(1);
    started_.emplace_back(effect.task, effect.part);
  }
  void take(const SignalGroup& effect) { signals_.emplace_back(effect.task, effect.signal); }
  void take(const ProgramWarning& effect) { lines_.push_back(effect.text); }
  void take(const PipesAreLate& /*effect*/) { ++late_; }
  void take(const ProgramsEnded& /*effect*/) { has_ended_ = true; }

  void end(std::size_t task, const Ending& ending) {
    core_.pipe_ended();
    core_.ended(task, ending, now_);
    take_effects();
  }
  void pass(seconds time) {
    pass_time(core_, now_, now_ + time, [this] { take_effects(); });
  }
  std::vector<std::pair<std::size_t, ProgramPart>> take_started() {
    return std::exchange(started_, {});
  }
  std::vector<std::pair<std::size_t, int>> take_group_signals() {
    return std::exchange(signals_, {});
  }

  TimePoint now_{std::chrono::hours(1)};
  ProgramSupervisor core_;
  std::vector<std::pair<std::size_t, ProgramPart>> started_;
  std::vector<std::pair<std::size_t, int>> signals_;
  std::vector<std::string> lines_;
  int late_ = 0;
  bool has_ended_ = false;
  bool cannot_start_ = false;
};

TEST_F(ProgramSupervisorTest, ThePartsOfATaskRunOneAfterTheOther) {
  begin(/*all_parts=*/true);
  EXPECT_THAT(take_started(),
              ElementsAre(Pair(0, ProgramPart::kInitializer), Pair(1, ProgramPart::kInitializer),
                          Pair(2, ProgramPart::kInitializer)));
  end(1, kPartDone);
  EXPECT_THAT(take_started(), ElementsAre(Pair(1, ProgramPart::kCommand)));
  end(1, kPartDone);
  EXPECT_THAT(take_started(), ElementsAre(Pair(1, ProgramPart::kFinalizer)));
}

TEST_F(ProgramSupervisorTest, TheRunIsOverWithItsLastWorker) {
  begin(/*all_parts=*/false);
  end(1, kPartDone);
  EXPECT_THAT(take_group_signals(), IsEmpty());
  end(2, kPartDone);
  EXPECT_THAT(take_group_signals(), ElementsAre(Pair(0, SIGTERM)));
  EXPECT_FALSE(has_ended_);
  end(0, {.signal = SIGTERM});
  EXPECT_TRUE(has_ended_);
  EXPECT_EQ(core_.exit_code(), kDone);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(ProgramSupervisorTest, AFailureStopsTheOthersAndDecidesTheCode) {
  begin(/*all_parts=*/false);
  end(2, kPartFailed);
  EXPECT_THAT(lines_, ElementsAre("[worker:1] ended with exit code 7; stopping the others"));
  EXPECT_THAT(take_group_signals(), ElementsAre(Pair(0, SIGTERM), Pair(1, SIGTERM)));
  end(1, {.exit_code = 9});
  end(0, {.signal = SIGTERM});
  EXPECT_EQ(core_.exit_code(), 7);
  EXPECT_EQ(core_.failed(), 2U);
  EXPECT_EQ(lines_.size(), 1U) << "the stop was requested";
}

TEST_F(ProgramSupervisorTest, AProgramThatIsKilledHasAShellsCode) {
  begin(/*all_parts=*/false);
  end(2, {.signal = SIGKILL});
  EXPECT_EQ(core_.exit_code(), 128 + SIGKILL);
}

TEST_F(ProgramSupervisorTest, WhereAnInitializerFailsThereIsNothingToFinalize) {
  begin(/*all_parts=*/true);
  take_started();
  end(0, kPartDone);
  end(1, kPartFailed);
  EXPECT_THAT(lines_,
              ElementsAre("[worker:0]'s initializer ended with exit code 7; stopping the others"));
  EXPECT_THAT(take_started(), ElementsAre(Pair(0, ProgramPart::kCommand)));
  end(0, {.signal = SIGTERM});
  EXPECT_THAT(take_started(), ElementsAre(Pair(0, ProgramPart::kFinalizer)))
      << "its command has run";
  end(2, {.signal = SIGTERM});
  EXPECT_THAT(take_started(), IsEmpty());
}

TEST_F(ProgramSupervisorTest, AFinalizerIsNotToldToStopButKilledWhenItTakesTooLong) {
  begin(/*all_parts=*/true);
  for (const std::size_t task : {0U, 1U, 2U}) {
    end(task, kPartDone);
  }
  end(1, kPartDone);  // its finalizer runs
  core_.stop(kInterrupted, SIGINT, now_);
  take_effects();
  EXPECT_THAT(take_group_signals(), ElementsAre(Pair(0, SIGINT), Pair(2, SIGINT)));
  pass(kStopGrace);
  EXPECT_THAT(take_group_signals(),
              ElementsAre(Pair(0, SIGKILL), Pair(1, SIGKILL), Pair(2, SIGKILL)));
  EXPECT_EQ(lines_.back(), "[worker:1] did not end within 5 s; killing it");
  take_started();
  end(0, {.signal = SIGKILL});
  EXPECT_THAT(take_started(), IsEmpty()) << "nothing is begun after that";
  EXPECT_EQ(core_.exit_code(), kInterrupted);
}

TEST_F(ProgramSupervisorTest, AFinalizerThatFailsAfterTheEndIsSaid) {
  begin(/*all_parts=*/true);
  for (int part = 0; part < 2; ++part) {
    for (const std::size_t task : {0U, 1U, 2U}) {
      end(task, kPartDone);
    }
  }
  end(1, kPartDone);
  end(2, kPartDone);
  end(0, kPartFailed);
  EXPECT_THAT(lines_,
              ElementsAre("[ps:0]'s finalizer ended with exit code 7; the run was over already"));
  EXPECT_EQ(core_.exit_code(), kDone);
}

TEST_F(ProgramSupervisorTest, APipeThatStaysOpenIsWaitedForAWhile) {
  begin(/*all_parts=*/false);
  core_.pipes_opened(1);  // a process has left the group with it
  for (const std::size_t task : {1U, 2U, 0U}) {
    end(task, kPartDone);
  }
  EXPECT_FALSE(has_ended_);
  pass(seconds(1));
  EXPECT_EQ(late_, 1);
  core_.wait_for_pipes(now_);
  pass(seconds(1));
  EXPECT_EQ(late_, 2);
  core_.pipe_ended();
  take_effects();
  EXPECT_TRUE(has_ended_);
}

TEST_F(ProgramSupervisorTest, ASignalEndsTheWaitForAPipe) {
  begin(/*all_parts=*/false);
  core_.pipes_opened(1);
  for (const std::size_t task : {1U, 2U, 0U}) {
    end(task, kPartDone);
  }
  core_.stop(kInterrupted, SIGINT, now_);
  take_effects();
  EXPECT_TRUE(has_ended_);
  EXPECT_EQ(core_.exit_code(), kDone) << "the run was over";
}

TEST_F(ProgramSupervisorTest, AProgramThatCannotBeStartedForAMomentIsStartedAfterAll) {
  cannot_start_ = true;
  begin(/*all_parts=*/false);
  EXPECT_THAT(lines_, testing::Each(testing::HasSubstr(" cannot be started: no processes; trying "
                                                       "again for up to 60 s")));
  EXPECT_EQ(lines_.size(), 3U);
  pass(seconds(20));
  EXPECT_THAT(take_started(), IsEmpty());
  cannot_start_ = false;
  pass(seconds(6));
  EXPECT_EQ(take_started().size(), 3U);
  EXPECT_EQ(core_.deadline(), TimePoint::max());
  EXPECT_EQ(lines_.size(), 3U);
}

TEST_F(ProgramSupervisorTest, AProgramThatCannotBeStartedForAMinuteEndsTheRun) {
  cannot_start_ = true;
  begin(/*all_parts=*/false);
  pass(seconds(70));
  EXPECT_TRUE(has_ended_);
  EXPECT_EQ(core_.exit_code(), kError);
  EXPECT_THAT(lines_.back(), testing::HasSubstr("could not be started: no processes"));
}

TEST_F(ProgramSupervisorTest, ACommandWithoutAProcessHasNothingToFinalize) {
  begin(/*all_parts=*/true);
  take_started();
  end(1, kPartDone);
  EXPECT_THAT(take_started(), ElementsAre(Pair(1, ProgramPart::kCommand)));
  cannot_start_ = true;
  end(2, kPartDone);
  pass(seconds(20));
  cannot_start_ = false;  // a finalizer could be started
  core_.stop(kTerminated, SIGTERM, now_);
  pass(seconds(1));
  EXPECT_THAT(take_started(), IsEmpty());
  end(1, {.signal = SIGTERM});
  EXPECT_THAT(take_started(), ElementsAre(Pair(1, ProgramPart::kFinalizer)))
      << "its command has run";
}

TEST_F(ProgramSupervisorTest, ASignalEndsTheWaitForAProcess) {
  cannot_start_ = true;
  begin(/*all_parts=*/false);
  core_.stop(kTerminated, SIGTERM, now_);
  pass(seconds(1));
  EXPECT_TRUE(has_ended_);
  EXPECT_EQ(core_.exit_code(), kTerminated);
}

}  // namespace
}  // namespace disttf::roles
