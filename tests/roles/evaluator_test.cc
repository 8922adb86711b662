// How an evaluator chooses the best model.
#include <gtest/gtest.h>

#include <cmath>
#include <system_error>

#include "roles/evaluator/best_checkpoint.h"
#include "tests/data/simulated_file_system.h"
#include "tests/storage/checkpoint_fixture.h"

namespace disttf::roles {
namespace {

TEST(BestMetric, EachHasItsName) {
  for (const std::string_view name : kBestMetricNames) {
    const auto metric = best_metric_from_name(name);
    ASSERT_TRUE(metric.has_value());
    EXPECT_EQ(best_metric_name(*metric), name);
  }
  EXPECT_FALSE(best_metric_from_name("f1").has_value());
  EXPECT_FALSE(best_metric_from_name("").has_value());
}

TEST(BestMetric, MoreAccuracyAndLessOfTheOthersIsBetter) {
  EXPECT_TRUE(is_better(BestMetric::kAccuracy, 0.9, 0.8));
  EXPECT_FALSE(is_better(BestMetric::kAccuracy, 0.8, 0.8));
  for (const BestMetric metric :
       {BestMetric::kLoss, BestMetric::kAbsoluteError, BestMetric::kSquaredError}) {
    EXPECT_TRUE(is_better(metric, 0.8, 0.9));
    EXPECT_FALSE(is_better(metric, 0.9, 0.9));
  }
}

TEST(BestMetric, WhatIsNoNumberIsBeatenByAny) {
  EXPECT_TRUE(is_better(BestMetric::kLoss, 3, NAN));
  EXPECT_FALSE(is_better(BestMetric::kLoss, NAN, 3));
  EXPECT_FALSE(is_better(BestMetric::kLoss, NAN, NAN));
}

TEST(BestMetric, IsOfClassesOrOfNumbers) {
  math::Evaluation of_classes;
  of_classes.classes = 10;
  const math::Evaluation of_numbers;
  EXPECT_FALSE(lacks_metric(BestMetric::kLoss, of_classes));
  EXPECT_FALSE(lacks_metric(BestMetric::kLoss, of_numbers));
  EXPECT_FALSE(lacks_metric(BestMetric::kAccuracy, of_classes));
  EXPECT_EQ(
      lacks_metric(BestMetric::kAccuracy, of_numbers),
      "--keep_best: \"accuracy\" is of classes, and the labels of this run are numbers: loss, "
      "absolute_error or squared_error");
  EXPECT_EQ(lacks_metric(BestMetric::kSquaredError, of_classes),
            "--keep_best: \"squared_error\" is of labels that are numbers, and those of this run "
            "are classes: accuracy or loss");
}

}  // namespace
}  // namespace disttf::roles

namespace disttf::roles::test {
namespace {

// The best checkpoint survives the pruning of others, and a power cut at any time.

using data::test::DiskState;
using data::test::PowerCut;
using data::test::SimulatedFileSystem;

constexpr const char* kRun = "/run";

class BestCheckpointTest : public CheckpointTest {
 protected:
  BestCheckpointTest() {
    layout_ = {};
    layout_.add("w", {5});
  }
  void save_on(data::FileSystem& disk, std::uint64_t step, std::size_t keep = 0) {
    CheckpointStore(disk, kRun).save(++attempts_, state(step, {}), layout_, kConfig, keep);
  }
  void keep(data::FileSystem& disk, std::uint64_t step) {
    BestCheckpoint best(disk, kRun);
    best.clear();
    ASSERT_TRUE(best.hold({.step = step}, ++attempts_).has_value());
    best.keep();
  }
  // Returns the steps of the checkpoints that are kept and intact. (A power cut may leave part of
  // one that was being removed.)
  [[nodiscard]] static std::vector<std::uint64_t> kept(data::FileSystem& disk) {
    const BestCheckpoint best(disk, kRun);
    std::vector<std::uint64_t> steps;
    for (const CheckpointName& name : best.kept()) {
      try {
        if (CheckpointReader(disk, best.path() / to_string(name)).verify().empty()) {
          steps.push_back(name.step);
        }
      } catch (const std::system_error&) {
        continue;  // it has no index
      }
    }
    return steps;
  }
};

using Steps = std::vector<std::uint64_t>;

TEST_F(BestCheckpointTest, StaysWhenTheRunRemovesIt) {
  SimulatedFileSystem disk;
  save_on(disk, 1);
  keep(disk, 1);
  save_on(disk, 2, 1);
  EXPECT_EQ(checkpoints_in(disk, kRun).size(), 1U);
  EXPECT_EQ(kept(disk), Steps{1});
}

TEST_F(BestCheckpointTest, ANewOneTakesItsPlace) {
  SimulatedFileSystem disk;
  save_on(disk, 1);
  save_on(disk, 2);
  keep(disk, 1);
  keep(disk, 2);
  EXPECT_EQ(kept(disk), Steps{2});
  keep(disk, 1);  // of a run that was rolled back
  EXPECT_EQ(kept(disk), Steps{1});
  keep(disk, 1);
  EXPECT_EQ(kept(disk), Steps{1});
}

TEST_F(BestCheckpointTest, OneThatIsDroppedLeavesNothing) {
  SimulatedFileSystem disk;
  save_on(disk, 1);
  BestCheckpoint best(disk, kRun);
  ASSERT_TRUE(best.hold({.step = 1}, 5).has_value());
  best.drop();
  std::error_code error;
  EXPECT_TRUE(disk.names_in(best.path(), error).empty());
}

TEST_F(BestCheckpointTest, OneThatIsGoneCannotBeHeld) {
  SimulatedFileSystem disk;
  save_on(disk, 1);
  BestCheckpoint best(disk, kRun);
  EXPECT_FALSE(best.hold({.step = 2}, 5).has_value());
}

TEST_F(BestCheckpointTest, IsHeldWhileTheRunRemovesIt) {
  SimulatedFileSystem disk;
  save_on(disk, 1);
  BestCheckpoint best(disk, kRun);
  ASSERT_TRUE(best.hold({.step = 1}, 5).has_value());
  save_on(disk, 2, 1);
  best.keep();
  EXPECT_EQ(kept(disk), Steps{1});
}

TEST_F(BestCheckpointTest, IsOnTheRealDiskAnotherNameOfTheSameFiles) {
  save(1);
  BestCheckpoint best(disk_, scratch_.path());
  ASSERT_TRUE(best.hold({.step = 1}, 5).has_value());
  const std::filesystem::path path = best.keep();
  EXPECT_EQ(std::filesystem::hard_link_count(path / kShard), 2U);
  std::filesystem::remove_all(scratch_.path() / "checkpoint-00000001");
  EXPECT_TRUE(CheckpointReader(disk_, path).verify().empty());
}

// The power is cut at each operation of marking step 2 while step 1 is the best, with any subset of
// what was not synced.
TEST_F(BestCheckpointTest, OneOfTheTwoIsWholeAfterAnyPowerCut) {
  SimulatedFileSystem before;
  save_on(before, 1);
  save_on(before, 2);
  keep(before, 1);
  const DiskState state = before.state().after_power_cut(before.state().outcomes() - 1);
  bool is_done = false;
  std::size_t seen = 0;
  for (std::size_t at = 0; !is_done; ++at) {
    SimulatedFileSystem disk(state);
    disk.cut_power_at(at);
    try {
      keep(disk, 2);
      is_done = disk.has_power();
    } catch (const PowerCut&) {
      is_done = false;
    }
    const std::size_t outcomes = disk.state().outcomes();
    ASSERT_LT(outcomes, 100'000U);
    for (std::size_t outcome = 0; outcome < outcomes; ++outcome) {
      SimulatedFileSystem left(disk.state().after_power_cut(outcome));
      const Steps steps = kept(left);
      ASSERT_FALSE(steps.empty()) << "cut at operation " << at << ", outcome " << outcome;
      if (is_done) {
        ASSERT_EQ(steps.front(), 2U) << outcome;
      }
      ++seen;
    }
    ASSERT_LT(at, 1000U);
  }
  EXPECT_GT(seen, 40U);
}

}  // namespace
}  // namespace disttf::roles::test
