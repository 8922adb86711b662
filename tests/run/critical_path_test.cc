#include "run/monitor/core/critical_path.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "run/monitor/core/record.h"

namespace disttf::roles {
namespace {

using testing::DoubleNear;
using testing::Eq;

constexpr double kExact = 1e-6;

TrainerSample sample(std::uint64_t step, float pull, float load, float forward, float backward,
                     float push, float overlapped = 0) {
  return {.step = step, .seconds = {pull, load, forward, backward, push, 0, overlapped}};
}

// Gradients that arrive when they are sent.
RangeSample prompt(std::uint64_t step, std::vector<float> arrived, float apply = 0.001F) {
  return {.step = step, .apply = apply, .arrived = std::move(arrived)};
}

double sum_of(const CriticalPath& critical_path) {
  return std::accumulate(critical_path.shares.begin(), critical_path.shares.end(), 0.0,
                         [](double sum, const auto& share) { return sum + share.seconds; });
}

TEST(CriticalPathFinder, KnowsNothingBeforeAllHaveTold) {
  CriticalPathFinder critical_path(2, 1, true);
  EXPECT_EQ(critical_path.take(), std::nullopt);
  critical_path.record_trainer(0, std::vector{sample(0, 0, 0, 0.01F, 0.02F, 0)});
  EXPECT_EQ(critical_path.take(), std::nullopt) << "the ps has not";
}

TEST(CriticalPathFinder, SharesAddUpToTheStep) {
  CriticalPathFinder critical_path(2, 1, true);
  // Rank 0 is ahead up to the loss, rank 1 behind it.
  critical_path.record_trainer(0, std::vector{sample(8, 0, 0, 0.010F, 0.010F, 0)});
  critical_path.record_trainer(1, std::vector{sample(8, 0, 0, 0.004F, 0.026F, 0)});
  critical_path.record_ps(0, std::vector{prompt(8, {0.020F, 0.030F}, 0.002F)});
  const auto found = critical_path.take();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 8U);
  EXPECT_EQ(found->steps, 1U);
  EXPECT_THAT(found->step_seconds, DoubleNear(0.032, kExact));
  EXPECT_THAT(sum_of(*found), DoubleNear(found->step_seconds, kExact));
  ASSERT_EQ(found->shares.size(), 3U);
  EXPECT_EQ(found->shares[0].stage, CriticalPathStage::kBackward);
  EXPECT_EQ(found->shares[0].index, 1U);
  EXPECT_THAT(found->shares[0].seconds, DoubleNear(0.020, kExact));
  EXPECT_EQ(found->shares[1].stage, CriticalPathStage::kForward);
  EXPECT_EQ(found->shares[1].index, 0U);
  EXPECT_EQ(found->shares[2].stage, CriticalPathStage::kApply);
  EXPECT_TRUE(found->shares[2].is_ps);
}

TEST(CriticalPathFinder, NamesWhoIsSlowAndByWhat) {
  CriticalPathFinder critical_path(3, 1, true);
  for (std::uint64_t step = 0; step < 10; ++step) {
    critical_path.record_trainer(0, std::vector{sample(step, 0, 0, 0.01F, 0.01F, 0)});
    critical_path.record_trainer(1, std::vector{sample(step, 0, 0, 0.01F, 0.018F, 0)});
    critical_path.record_trainer(2, std::vector{sample(step, 0, 0, 0.01F, 0.01F, 0)});
    critical_path.record_ps(0, std::vector{prompt(step, {0.02F, 0.028F, 0.02F})});
  }
  const auto found = critical_path.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_FALSE(found->slowest->is_ps);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, CriticalPathStage::kBackward);
  EXPECT_THAT(found->slowest->slower, DoubleNear(0.4, 1e-4));
  EXPECT_FALSE(found->slowest->is_alone);
  EXPECT_EQ(found->steps, 10U);
}

TEST(CriticalPathFinder, NamesNoTaskWhereAllAreAlike) {
  CriticalPathFinder critical_path(2, 1, true);
  critical_path.record_trainer(0, std::vector{sample(0, 0, 0, 0.0100F, 0.01F, 0)});
  critical_path.record_trainer(1, std::vector{sample(0, 0, 0, 0.0105F, 0.01F, 0)});
  critical_path.record_ps(0, std::vector{prompt(0, {0.02F, 0.0205F})});
  const auto found = critical_path.take();
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->slowest);
}

// What a trainer cannot see: the kernel has the gradient, and the link is slow.
TEST(CriticalPathFinder, WhatTheTrainerDidNotSeeIsItsPush) {
  CriticalPathFinder critical_path(2, 1, true);
  critical_path.record_trainer(0, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  critical_path.record_trainer(1, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  critical_path.record_ps(0, std::vector{prompt(0, {0.021F, 0.071F})});
  const auto found = critical_path.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, CriticalPathStage::kPush);
  // Read behind the other, it may have waited as long for the ps as that one: 1 ms.
  EXPECT_THAT(found->slowest->seconds, DoubleNear(0.049, kExact));
}

// The next batch is loaded while the others are waited for: it is late where that takes longer.
TEST(CriticalPathFinder, LoadingThatOutlastsTheWaitIsLoading) {
  CriticalPathFinder critical_path(2, 1, true);
  critical_path.record_trainer(0, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0, 0.002F)});
  critical_path.record_trainer(1, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0, 0.040F)});
  critical_path.record_ps(0, std::vector{prompt(0, {0.02F, 0.05F})});
  const auto found = critical_path.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, CriticalPathStage::kLoad);
}

TEST(CriticalPathFinder, WhatAllTrainersShareIsThePs) {
  CriticalPathFinder critical_path(2, 2, true);
  critical_path.record_trainer(0, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  critical_path.record_trainer(1, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  critical_path.record_ps(0, std::vector{prompt(0, {0.0201F, 0.0202F})});
  critical_path.record_ps(1, std::vector{prompt(0, {0.0501F, 0.0502F})});
  const auto found = critical_path.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_TRUE(found->slowest->is_ps);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, CriticalPathStage::kReceive);
}

// A trainer that waits for one ps's parameters sends no gradient to the other ps meanwhile, so the
// path to the other ps does not become longer.
TEST(CriticalPathFinder, WhoWaitsForOnePsIsNotOnTheWayToAnother) {
  CriticalPathFinder critical_path(2, 2, true);
  TrainerSample late = sample(0, 0, 0, 0.01F, 0.01F, 0);
  late.last_ps = {.index = 0, .seconds = 0.03F};
  for (const std::size_t rank : {0U, 1U}) {
    critical_path.record_trainer(rank, std::vector{late});
  }
  // Ps 0 made its parameters 30 ms later than ps 1, and sooner has what is computed from them.
  critical_path.record_ps(0, std::vector{prompt(0, {0.0201F, 0.0201F}, 0.031F)});
  critical_path.record_ps(1, std::vector{prompt(0, {0.0501F, 0.0501F}, 0.001F)});
  const auto found = critical_path.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_TRUE(found->slowest->is_ps);
  EXPECT_EQ(found->slowest->index, 0U);
  EXPECT_EQ(found->slowest->stage, CriticalPathStage::kApply);
}

// It reads one gradient after the other: the last one's trainer is not to blame.
TEST(CriticalPathFinder, APsThatReadsSlowlyIsNotTheLastTrainersPush) {
  CriticalPathFinder critical_path(3, 2, true);
  for (const std::size_t rank : {0U, 1U, 2U}) {
    critical_path.record_trainer(rank, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  }
  critical_path.record_ps(0, std::vector{prompt(0, {0.03F, 0.04F, 0.05F})});
  critical_path.record_ps(1, std::vector{prompt(0, {0.021F, 0.022F, 0.023F})});
  const auto found = critical_path.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_TRUE(found->slowest->is_ps);
  EXPECT_EQ(found->slowest->index, 0U);
  EXPECT_EQ(found->slowest->stage, CriticalPathStage::kReceive);
}

// In each step the one trainer or the other is behind a stall of the ps.
TEST(CriticalPathFinder, APsThatStallsNowAndThenIsNamed) {
  CriticalPathFinder critical_path(2, 2, true);
  for (std::uint64_t step = 0; step < 20; ++step) {
    for (const std::size_t rank : {0U, 1U}) {
      critical_path.record_trainer(rank, std::vector{sample(step, 0, 0, 0.01F, 0.01F, 0)});
    }
    const bool is_first = step % 2 == 0;
    critical_path.record_ps(
        0, std::vector{prompt(step, {is_first ? 0.06F : 0.021F, is_first ? 0.021F : 0.06F})});
    critical_path.record_ps(1, std::vector{prompt(step, {0.021F, 0.021F})});
  }
  const auto found = critical_path.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_TRUE(found->slowest->is_ps);
  EXPECT_EQ(found->slowest->index, 0U);
}

// Steps of a cluster as its clocks would see them: each trainer computes and sends for times that
// are drawn anew, each ps reads one gradient after the other, and answers when it has made its
// step. One stage of one task takes longer than that.
class DrawnCluster {
 public:
  explicit DrawnCluster(std::uint32_t seed) : random_(seed) {
    trainers_ = draw(2, 6);
    ps_ = draw(2, 4);
    stage_ = static_cast<CriticalPathStage>(draw(0, kCriticalPathStages - 1));
    is_ps_ = stage_ == CriticalPathStage::kReceive || stage_ == CriticalPathStage::kApply;
    slow_ = draw(0, (is_ps_ ? ps_ : trainers_) - 1);
    // The stage takes at least half of a usual step longer: times are uneven by a quarter.
    excess_ = static_cast<float>(draw(20, 80)) / 1000;
  }

  [[nodiscard]] std::string text() const {
    return std::string(is_ps_ ? "ps " : "trainer ") + std::to_string(slow_) + " of " +
           std::to_string(trainers_) + " trainers, " + std::to_string(ps_) +
           " ps: " + std::string(kCriticalPathStageNames[static_cast<std::size_t>(stage_)]) +
           " takes " + std::to_string(excess_) + " s more";
  }
  [[nodiscard]] bool is_named(const std::optional<CriticalPath>& critical_path) const {
    return critical_path && critical_path->slowest && critical_path->slowest->is_ps == is_ps_ &&
           critical_path->slowest->index == slow_ && critical_path->slowest->stage == stage_;
  }
  [[nodiscard]] std::optional<CriticalPath> after(std::uint64_t steps) {
    CriticalPathFinder critical_path(trainers_, ps_, true);
    std::vector<float> made(ps_, 0.0F);  // when each ps had the parameters, by the world's clock
    for (std::uint64_t step = 0; step < steps; ++step) {
      make(step, made, critical_path);
    }
    return critical_path.take();
  }

 private:
  std::size_t draw(std::size_t from, std::size_t to) { return from + random_() % (to - from + 1); }
  // `usual`, a quarter more or less; and what is injected.
  float takes(float usual, CriticalPathStage stage, bool is_ps, std::size_t index) {
    const float noisy = usual * (0.75F + static_cast<float>(draw(0, 500)) / 1000);
    return stage == stage_ && is_ps == is_ps_ && index == slow_ ? noisy + excess_ : noisy;
  }

  void make(std::uint64_t step, std::vector<float>& made, CriticalPathFinder& critical_path) {
    using enum CriticalPathStage;
    const auto last = std::ranges::max_element(made);
    float before = 0;
    for (const float each : made) {
      before = each < *last ? std::max(before, each) : before;
    }
    std::vector<std::vector<float>> arrivals(ps_, std::vector<float>(trainers_));
    for (std::size_t rank = 0; rank < trainers_; ++rank) {
      TrainerSample told = sample(
          step, takes(0.001F, kPull, false, rank), takes(0.001F, kLoad, false, rank),
          takes(0.010F, kForward, false, rank), takes(0.020F, kBackward, false, rank), 0.0002F);
      told.last_ps = {.index = static_cast<std::uint32_t>(last - made.begin()),
                      .seconds = *last - before};
      const float sent = *last + std::accumulate(told.seconds.begin(), told.seconds.end(), 0.0F);
      // The kernel has the gradients: the trainer does not see how long they are on the way.
      for (std::vector<float>& each : arrivals) {
        each[rank] = sent + takes(0.001F, kPush, false, rank);
      }
      critical_path.record_trainer(rank, std::vector{told});
    }
    for (std::size_t ps = 0; ps < ps_; ++ps) {
      critical_path.record_ps(ps, std::vector{read(step, ps, made[ps], arrivals[ps])});
    }
  }
  // Whose gradient comes first is read first. Until then `made` was the newest; now it is the next.
  RangeSample read(std::uint64_t step, std::size_t ps, float& made,
                   const std::vector<float>& arrivals) {
    using enum CriticalPathStage;
    std::vector<std::size_t> order(arrivals.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&arrivals](std::size_t rank) { return arrivals[rank]; });
    RangeSample told = prompt(step, arrivals, takes(0.002F, kApply, true, ps));
    float now = 0;
    for (const std::size_t rank : order) {
      now = std::max(now, arrivals[rank]) + takes(0.001F, kReceive, true, ps);
      told.arrived[rank] = now - made;
    }
    made = now + told.apply;
    return told;
  }

  std::mt19937 random_;
  std::size_t trainers_ = 0;
  std::size_t ps_ = 0;
  CriticalPathStage stage_ = CriticalPathStage::kPull;
  bool is_ps_ = false;
  std::size_t slow_ = 0;
  float excess_ = 0;
};

TEST(CriticalPathFinder, NamesTaskAndStageOfFiftyDrawnFaults) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    DrawnCluster cluster(seed);
    const auto found = cluster.after(30);
    EXPECT_TRUE(cluster.is_named(found)) << "seed " << seed << ": " << cluster.text();
    if (found && found->slowest && !cluster.is_named(found)) {
      ADD_FAILURE() << (found->slowest->is_ps ? "ps " : "trainer ") << found->slowest->index << " "
                    << kCriticalPathStageNames[static_cast<std::size_t>(found->slowest->stage)];
    }
  }
}

TEST(CriticalPathFinder, OnePsIsHeldAgainstItself) {
  CriticalPathFinder critical_path(1, 1, true);
  const auto told = [&critical_path](std::uint64_t step, float apply) {
    critical_path.record_trainer(0, std::vector{sample(step, 0, 0, 0.01F, 0.01F, 0)});
    critical_path.record_ps(0, std::vector{prompt(step, {0.02F}, apply)});
  };
  told(0, 0.001F);
  EXPECT_FALSE(critical_path.take()->slowest);
  for (std::uint64_t step = 1; step < 100; ++step) {
    told(step, 0.02F);
  }
  const auto found = critical_path.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_TRUE(found->slowest->is_ps);
  EXPECT_EQ(found->slowest->stage, CriticalPathStage::kApply);
  EXPECT_TRUE(found->slowest->is_alone);
  const net::Cluster cluster{
      .ps = {{"p", 1}}, .workers = {{"w", 1}}, .chief = {}, .evaluators = {}};
  EXPECT_THAT(slowest_text(*found->slowest, cluster),
              testing::MatchesRegex("ps:0 is [0-9]+ % slower than at its fastest: apply"));
  EXPECT_THAT(critical_path_line(*found, cluster, 1),
              testing::HasSubstr(R"("than":"its fastest")"));
}

TEST(CriticalPathFinder, WhoHasLeftIsNotWaitedFor) {
  CriticalPathFinder critical_path(2, 1, true);
  critical_path.record_trainer(0, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  critical_path.record_trainer(1, std::vector{sample(0, 0, 0, 0.01F, 0.01F, 0)});
  critical_path.record_ps(0, std::vector{prompt(0, {0.02F, 0.02F})});
  ASSERT_TRUE(critical_path.take());
  for (std::uint64_t step = 1; step < 6; ++step) {
    critical_path.record_trainer(0, std::vector{sample(step, 0, 0, 0.01F, 0.01F, 0)});
    critical_path.record_ps(0, std::vector{prompt(step, {0.02F, -1.0F})});
    static_cast<void>(critical_path.take());
  }
  EXPECT_THAT(critical_path.take()->step, Eq(5U));
}

TEST(CriticalPathFinder, StepsThatAreMadeAgainTakeThePlaceOfTheFirst) {
  CriticalPathFinder critical_path(1, 1, true);
  critical_path.record_trainer(
      0, std::vector{sample(7, 0, 0, 0.5F, 0, 0), sample(8, 0, 0, 0.5F, 0, 0)});
  critical_path.record_trainer(0, std::vector{sample(7, 0, 0, 0.01F, 0, 0)});
  critical_path.record_ps(0, std::vector{prompt(7, {0.01F}), prompt(8, {0.5F})});
  const auto found = critical_path.take();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 7U);
  EXPECT_THAT(found->step_seconds, DoubleNear(0.011, kExact));
}

TEST(CriticalPathFinder, WithoutACommonStepMeansAreCompared) {
  CriticalPathFinder critical_path(3, 1, false);
  critical_path.record_trainer(0, std::vector{sample(10, 0, 0, 0.01F, 0.01F, 0)});
  critical_path.record_trainer(1, std::vector{sample(11, 0, 0, 0.05F, 0.01F, 0)});
  critical_path.record_trainer(2, std::vector{sample(12, 0, 0, 0.01F, 0.01F, 0)});
  const auto found = critical_path.take();
  ASSERT_TRUE(found && found->slowest);
  EXPECT_EQ(found->slowest->index, 1U);
  EXPECT_EQ(found->slowest->stage, CriticalPathStage::kForward);
}

TEST(StepSamples, TasksThatChooseAloneMeet) {
  StepSamples<TrainerSample> fast;
  StepSamples<TrainerSample> slow;
  for (std::uint64_t step = 0; step < 1000; ++step) {
    if (fast.wants(step)) {
      fast.add({.step = step});
    }
    if (step % 3 == 0 && slow.wants(step)) {  // told more seldom of each
      slow.add({.step = step});
    }
  }
  const auto of_fast = fast.take();
  EXPECT_LE(of_fast.size(), StepSampling::kMost);
  EXPECT_GE(of_fast.size(), StepSampling::kMost / 4);
  for (const TrainerSample& each : slow.take()) {
    if (each.step % 16 == 0) {
      EXPECT_THAT(of_fast, testing::Contains(testing::Field(&TrainerSample::step, each.step)));
    }
  }
}

TEST(StepSamples, ASlowRunIsMeasuredAtEachStepAgain) {
  StepSamples<TrainerSample> samples;
  for (std::uint64_t step = 0; step < 500; ++step) {
    if (samples.wants(step)) {
      samples.add({.step = step});
    }
  }
  for (int second = 0; second < 5; ++second) {
    static_cast<void>(samples.take());
  }
  EXPECT_TRUE(samples.wants(501));
}

TEST(StepSamples, TheSameStepAgainAndAgainIsBounded) {
  StepSamples<TrainerSample> samples;
  for (int time = 0; time < 1000; ++time) {
    samples.add({.step = 0});
  }
  EXPECT_LE(samples.take().size(), StepSampling::kMost);
}

}  // namespace
}  // namespace disttf::roles
