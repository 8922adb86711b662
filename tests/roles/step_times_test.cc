#include "roles/ps/core/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::FloatNear;

class StepTimesTest : public testing::Test {
 protected:
  void at(int milliseconds_since) { now_ = kStart + milliseconds(milliseconds_since); }
  void make(std::uint64_t step, int from, int until) {
    at(from);
    times_.making(step, step + 1, now_);
    at(until);
    if (times_.is_awaited()) {
      times_.made(now_);
    }
  }
  void arrive(std::size_t rank, std::uint64_t step, int time) {
    at(time);
    times_.arrived(rank, step, now_);
  }

  static constexpr StepTimes::Clock::time_point kStart{std::chrono::hours(1)};
  StepTimes::Clock::time_point now_ = kStart;
  StepTimes times_{2};
};

TEST_F(StepTimesTest, MeasuresFromWhenTheParametersWereThere) {
  make(0, 0, 10);
  arrive(0, 1, 30);
  arrive(1, 1, 50);
  make(1, 50, 54);
  const auto samples = times_.take();
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].step, 1U);
  EXPECT_THAT(samples[0].arrived, ElementsAre(FloatNear(0.020F, 1e-6F), FloatNear(0.040F, 1e-6F)));
  EXPECT_THAT(samples[0].apply, FloatNear(0.004F, 1e-6F));
}

TEST_F(StepTimesTest, WhoHasNotComeIsBelowZero) {
  make(0, 0, 10);
  arrive(1, 1, 50);
  arrive(0, 0, 51);  // of an earlier step
  make(1, 51, 54);
  EXPECT_LT(times_.take().at(0).arrived[0], 0);
}

TEST_F(StepTimesTest, EachStepOfAWindowIsKept) {
  times_.trace({.from = 2, .count = 2});
  for (int step = 0; step < 6; ++step) {
    make(static_cast<std::uint64_t>(step), 10 * step + 4, 10 * step + 6);
  }
  const auto traced = times_.take_traced(64);
  ASSERT_EQ(traced.size(), 2U);
  EXPECT_EQ(traced[0].step, 2U);
  EXPECT_EQ(traced[1].step, 3U);
  EXPECT_EQ(traced[1].began,
            std::chrono::nanoseconds((kStart + milliseconds(26)).time_since_epoch()).count());
  EXPECT_THAT(traced[1].waited, FloatNear(0.008F, 1e-6F));
  EXPECT_THAT(traced[1].apply, FloatNear(0.002F, 1e-6F));
  EXPECT_TRUE(times_.all_traced_taken());
}

TEST_F(StepTimesTest, TracedStepsAreTakenAFewAtATime) {
  times_.trace({.from = 1, .count = 3});
  for (int step = 0; step < 6; ++step) {
    make(static_cast<std::uint64_t>(step), 10 * step + 4, 10 * step + 6);
  }
  times_.trace({.from = 1, .count = 3});  // the same window again
  EXPECT_EQ(times_.take_traced(2).size(), 2U);
  EXPECT_FALSE(times_.all_traced_taken());
  EXPECT_EQ(times_.take_traced(2).size(), 1U);
  EXPECT_TRUE(times_.all_traced_taken());
  times_.trace({.from = 100, .count = 3});
  EXPECT_TRUE(times_.take_traced(2).empty());
}

// The first step of a state: when its parameters became available is unknown.
TEST_F(StepTimesTest, AStepWhoseBeginningWasNotSeenIsNotMeasured) {
  arrive(0, 7, 5);
  make(7, 6, 7);
  EXPECT_TRUE(times_.take().empty());
}

TEST_F(StepTimesTest, AfterARollbackTheStepUnderWayIsForgotten) {
  make(9, 0, 10);
  make(3, 50, 51);  // not 10: the state was replaced
  EXPECT_TRUE(times_.take().empty());
  arrive(0, 4, 60);
  make(4, 60, 61);
  EXPECT_EQ(times_.take().at(0).step, 4U);
}

TEST_F(StepTimesTest, LooksAtNoClockForStepsThatAreNotMeasured) {
  int looked = 0;
  for (std::uint64_t step = 0; step < 1000; ++step) {
    times_.making(step, step + 1, now_);
    if (times_.is_awaited()) {
      ++looked;
      times_.made(now_);
    }
  }
  EXPECT_LT(looked, 400);
}

}  // namespace
}  // namespace disttf::roles
