#include "roles/launch/core/fault_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace disttf::roles {
namespace {

using Kind = ProcessFault::Kind;

const std::vector<std::size_t> kTasks = {0, 1, 2, 5};

std::vector<ProcessFault> faults_until(std::uint64_t step, const ChaosOptions& options) {
  FaultPlan plan(options, kTasks);
  std::vector<ProcessFault> all = plan.take_until(0);
  for (const ProcessFault& fault : plan.take_until(step)) {
    all.push_back(fault);
  }
  return all;
}

TEST(FaultPlanTest, IsAFunctionOfTheSeed) {
  const ChaosOptions options{.seed = 7, .per_1000 = 50};
  EXPECT_EQ(faults_until(2000, options), faults_until(2000, options));
  EXPECT_NE(faults_until(2000, options), faults_until(2000, {.seed = 8, .per_1000 = 50}));
}

TEST(FaultPlanTest, HasTheRateThatItWasGiven) {
  EXPECT_TRUE(faults_until(10'000, {.seed = 7, .per_1000 = 0}).empty());
  EXPECT_EQ(faults_until(9'999, {.seed = 7, .per_1000 = 1000}).size(), 10'000U);
  // 500 are expected, with a standard deviation of 22.
  const std::size_t some = faults_until(10'000, {.seed = 7, .per_1000 = 50}).size();
  EXPECT_GT(some, 400U);
  EXPECT_LT(some, 600U);
}

TEST(FaultPlanTest, HitsEveryTaskInBothWays) {
  std::array<std::array<int, 2>, 6> hits{};
  for (const ProcessFault& fault : faults_until(999, {.seed = 7, .per_1000 = 1000})) {
    ++hits.at(fault.task).at(fault.kind == Kind::kKill ? 0 : 1);
  }
  for (const std::size_t task : kTasks) {
    EXPECT_GT(hits.at(task)[0], 50);
    EXPECT_GT(hits.at(task)[1], 50);
  }
  EXPECT_EQ(hits[3], (std::array{0, 0})) << "it is not among them";
}

TEST(FaultPlanTest, FreezesForAtMostTwoSeconds) {
  for (const ProcessFault& fault : faults_until(999, {.seed = 7, .per_1000 = 1000})) {
    if (fault.kind == Kind::kFreeze) {
      EXPECT_GE(fault.frozen_for.count(), 50);
      EXPECT_LE(fault.frozen_for.count(), 2000);
    } else {
      EXPECT_EQ(fault.frozen_for.count(), 0);
    }
  }
}

// However coarse the reports of the run's progress are.
TEST(FaultPlanTest, GivesEachFaultOnceInItsOrder) {
  const ChaosOptions options{.seed = 7, .per_1000 = 100};
  FaultPlan plan(options, kTasks);
  std::vector<ProcessFault> taken;
  for (const std::uint64_t step : {0U, 1U, 400U, 300U, 400U, 401U, 1000U}) {
    for (const ProcessFault& fault : plan.take_until(step)) {
      EXPECT_LE(fault.step, step);
      taken.push_back(fault);
    }
  }
  EXPECT_EQ(taken, faults_until(1000, options));
}

TEST(FaultPlanTest, SkipsWhatLiesBeforeTheRunsFirstStep) {
  FaultPlan plan({.seed = 7, .per_1000 = 1000}, kTasks);
  const std::vector<ProcessFault> first = plan.take_until(600);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].step, 600U);
}

}  // namespace
}  // namespace disttf::roles
