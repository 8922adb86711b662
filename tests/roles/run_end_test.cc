// The end of a run at one ps: when each GOODBYE is answered, and when the ps itself may end.
#include "roles/ps/core/run_end.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/roles/replica_host.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Due = RunEnd::Due;

// The chief, which is worker 0, and worker 1. Time is virtual: since the run began.
class RunEndTest : public testing::Test {
 protected:
  void SetUp() override {
    end_.begin_steps(/*expects_all=*/true);
    connect(0);
  }
  static Clock::time_point at(Clock::duration time) { return kStart + time; }
  void connect(std::size_t rank, Clock::duration time = {}) {
    trainers_.attach(
        rank, step_of(rank),
        {.cluster = {}, .from = task_.cluster.trainer(rank), .to = task_.self, .incarnation = 7},
        at(time), out_);
  }
  void hang_up(std::size_t rank, Clock::duration time) {
    trainers_.detach(rank, step_of(rank), at(time));
  }
  static ConnectionId step_of(std::size_t rank) { return rank + 1; }
  void say_goodbye(std::size_t rank, Clock::duration time = {}) {
    trainers_[rank].done = trainers_[rank].done || !end_.is_over();
    end_.goodbye(rank, at(time));
  }
  [[nodiscard]] bool may_leave(std::size_t rank, Clock::duration time = {}) const {
    return end_.may_leave(rank, trainers_, at(time));
  }
  [[nodiscard]] Due due(Clock::duration time) const { return end_.due(trainers_, at(time)); }

  static constexpr Clock::time_point kStart{std::chrono::hours(1)};
  static constexpr std::size_t kChief = 0;
  static constexpr std::size_t kWorker = 1;
  const Task task_ = task_of_ps(0);
  Outbox out_;
  Membership trainers_{task_, kStart};
  RunEnd end_{task_.timeouts};
};

// ---- before it is over ----

TEST_F(RunEndTest, ATrainerWithItsResultEndsTheSteps) {
  EXPECT_FALSE(end_.no_more_steps());
  say_goodbye(kWorker);
  EXPECT_TRUE(end_.no_more_steps());
  EXPECT_FALSE(end_.is_over());
}

TEST_F(RunEndTest, AWorkerIsKeptUntilTheRunIsOver) {
  connect(kWorker);
  say_goodbye(kWorker);
  say_goodbye(kChief);
  EXPECT_FALSE(may_leave(kWorker, seconds(100)));
  end_.shut_down();
  EXPECT_TRUE(may_leave(kWorker));
}

TEST_F(RunEndTest, TheChiefIsAnsweredWhenTheOthersAreDone) {
  connect(kWorker);
  say_goodbye(kChief);
  EXPECT_FALSE(may_leave(kChief));
  say_goodbye(kWorker);
  EXPECT_TRUE(may_leave(kChief));
}

TEST_F(RunEndTest, AWorkerThatComputesHasItsTimeout) {
  connect(kWorker);
  say_goodbye(kChief, seconds(5));
  EXPECT_FALSE(may_leave(kChief, seconds(24)));
  EXPECT_TRUE(may_leave(kChief, seconds(25)));
}

TEST_F(RunEndTest, AWorkerThatWasNeverSeenHasAMoment) {
  say_goodbye(kChief, seconds(5));
  EXPECT_FALSE(may_leave(kChief, seconds(6)));
  EXPECT_TRUE(may_leave(kChief, milliseconds(6500)));
}

TEST_F(RunEndTest, NoTrainerIsExpectedWhereAStepTakesThePresentOnes) {
  end_.begin_steps(/*expects_all=*/false);
  say_goodbye(kChief, seconds(5));
  EXPECT_TRUE(may_leave(kChief, seconds(5)));
}

TEST_F(RunEndTest, ARestoreTakesItBack) {
  say_goodbye(kChief);
  end_.begin_steps(/*expects_all=*/true);
  EXPECT_FALSE(end_.no_more_steps());
}

// ---- over ----

TEST_F(RunEndTest, NothingIsTakenBackOnceItIsOver) {
  end_.shut_down();
  end_.begin_steps(/*expects_all=*/true);
  EXPECT_TRUE(end_.no_more_steps());
  EXPECT_TRUE(end_.is_over());
}

// Its earlier GOODBYE only meant that it had its result.
TEST_F(RunEndTest, TheChiefSaysOnceMoreThatItLeaves) {
  say_goodbye(kChief);
  end_.shut_down();
  EXPECT_FALSE(may_leave(kChief, seconds(100)));
  EXPECT_EQ(due(seconds(100)), Due::kNotYet);
  say_goodbye(kChief, seconds(100));
  EXPECT_TRUE(may_leave(kChief, seconds(100)));
  EXPECT_EQ(due(seconds(100)), Due::kChiefLeaves);
}

TEST_F(RunEndTest, OthersHaveAMomentToLeave) {
  connect(kWorker);
  end_.shut_down();
  say_goodbye(kChief, seconds(3));
  EXPECT_EQ(due(seconds(4)), Due::kNotYet);
  EXPECT_EQ(due(milliseconds(4500)), Due::kChiefLeaves);
  hang_up(kWorker, seconds(4));
  EXPECT_EQ(due(seconds(4)), Due::kChiefLeaves);
}

TEST_F(RunEndTest, AChiefThatIsGoneIsWaitedForNoLongerThanAPeer) {
  end_.shut_down();
  EXPECT_EQ(due(seconds(1000)), Due::kNotYet) << "it is there";
  hang_up(kChief, seconds(1000));
  EXPECT_EQ(due(seconds(1060)), Due::kNotYet);
  EXPECT_EQ(due(seconds(1061)), Due::kChiefIsGone);
}

// A chief that is disconnected before the end is a failure, which is handled elsewhere.
TEST_F(RunEndTest, NothingIsDueBeforeItIsOver) {
  hang_up(kChief, seconds(1));
  EXPECT_EQ(due(seconds(1000)), Due::kNotYet);
}

TEST_F(RunEndTest, NothingIsDueOnceItHasEnded) {
  end_.shut_down();
  say_goodbye(kChief);
  end_.end();
  EXPECT_EQ(due(seconds(1000)), Due::kNotYet);
  EXPECT_TRUE(end_.has_ended());
  end_.shut_down();
  EXPECT_TRUE(end_.has_ended());
}

// ---- time, and states ----

TEST_F(RunEndTest, TimeThatWasMissedIsNoPatience) {
  connect(kWorker);
  say_goodbye(kChief, seconds(5));
  end_.forgive(seconds(100), at(seconds(106)));
  EXPECT_FALSE(may_leave(kChief, seconds(124)));
  EXPECT_TRUE(may_leave(kChief, seconds(125)));
  end_.shut_down();
  say_goodbye(kChief, seconds(200));
  end_.forgive(seconds(50), at(seconds(251)));
  EXPECT_FALSE(may_leave(kChief, seconds(251)));
  EXPECT_TRUE(may_leave(kChief, seconds(252)));
}

TEST_F(RunEndTest, AStateThatIsNoMoreTakesItsEndAlong) {
  end_.shut_down();
  say_goodbye(kChief);
  end_.forget();
  EXPECT_FALSE(end_.is_over());
  EXPECT_FALSE(end_.no_more_steps());
  end_.shut_down();
  EXPECT_FALSE(may_leave(kChief, seconds(100)));
}

}  // namespace
}  // namespace disttf::roles
