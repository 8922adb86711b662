#include "math/parameter_layout.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace disttf::math {
namespace {

TEST(ParameterLayout, StartsEveryVariableOnACacheLine) {
  ParameterLayout layout;
  layout.add("a", {3, 5});
  layout.add("b", {16});
  layout.add("c", {17});
  ASSERT_EQ(layout.variables().size(), 3U);
  EXPECT_EQ(layout.variables()[0].offset, 0U);
  EXPECT_EQ(layout.variables()[1].offset, 16U);
  EXPECT_EQ(layout.variables()[2].offset, 32U);
  EXPECT_EQ(layout.size(), 64U);
}

TEST(ParameterLayout, KeepsNamesAndShapes) {
  ParameterLayout layout;
  layout.add("hid_w", {784, 100});
  EXPECT_EQ(layout.variables()[0].name, "hid_w");
  EXPECT_EQ(layout.variables()[0].shape, (std::vector<std::size_t>{784, 100}));
  EXPECT_EQ(layout.variables()[0].size, 78400U);
}

TEST(ParameterLayout, CountsParametersWithoutPadding) {
  ParameterLayout layout;
  layout.add("a", {3, 5});
  layout.add("b", {10});
  EXPECT_EQ(layout.parameter_count(), 25U);
}

// Variables at 0 to 14, 16 to 25 and 32 to 48.
TEST(ParameterLayout, TellsWhichPartsOfARangeDecay) {
  ParameterLayout layout;
  layout.add("a_w", {3, 5});
  layout.add("a_b", {10}, /*decays=*/false);
  layout.add("b_w", {17});
  using Ranges = std::vector<Range>;
  EXPECT_EQ(layout.decaying({0, layout.size()}), (Ranges{{0, 15}, {32, 49}}));
  EXPECT_EQ(layout.decaying({0, 1024}), (Ranges{{0, 15}, {32, 49}}));
  EXPECT_EQ(layout.decaying({10, 40}), (Ranges{{0, 5}, {22, 30}}));
  EXPECT_EQ(layout.decaying({15, 32}), Ranges{});
  EXPECT_EQ(layout.decaying({40, 40}), Ranges{});
}

ParameterLayout with_running_statistics() {
  ParameterLayout layout;
  layout.add("w", {20});
  layout.add("gamma", {3}, /*decays=*/false);
  layout.add("mean", {3}, /*decays=*/false, /*momentum=*/0.5F);
  layout.add("variance", {3}, /*decays=*/true, /*momentum=*/0.25F);
  layout.add("w2", {5});
  return layout;
}

TEST(ParameterLayout, TellsWhichPartsOfARangeAreRunningStatistics) {
  using RunningRanges = std::vector<RunningRange>;
  const ParameterLayout layout = with_running_statistics();
  EXPECT_EQ(layout.running({0, 96}), (RunningRanges{{{48, 51}, 0.5F}, {{64, 67}, 0.25F}}));
  EXPECT_EQ(layout.running({50, 65}), (RunningRanges{{{0, 1}, 0.5F}, {{14, 15}, 0.25F}}));
  EXPECT_EQ(layout.running({51, 64}), RunningRanges{});
}

TEST(ParameterLayout, LeavesRunningStatisticsOutOfWhatIsTrainedAndDecays) {
  using Ranges = std::vector<Range>;
  const ParameterLayout layout = with_running_statistics();
  EXPECT_EQ(layout.trained(), (Ranges{{0, 48}, {80, 96}}));
  EXPECT_EQ(layout.decaying({0, 96}), (Ranges{{0, 20}, {80, 85}}));
  EXPECT_EQ(layout.parameter_count(), 34U);
}

TEST(ParameterLayout, IsEmptyWithoutVariables) {
  const ParameterLayout layout;
  EXPECT_EQ(layout.size(), 0U);
  EXPECT_EQ(layout.parameter_count(), 0U);
  EXPECT_TRUE(layout.trained().empty());
}

class ShardRange : public testing::TestWithParam<std::size_t> {
 protected:
  static constexpr std::size_t kSizes[] = {0,    1,     16,    1023,   1024,   1025,
                                           7856, 79520, 79536, 814096, 1 << 22};
};

TEST_P(ShardRange, CoversTheVectorInOrderWithoutGapOrOverlap) {
  for (const std::size_t size : kSizes) {
    std::size_t end = 0;
    for (std::size_t i = 0; i < GetParam(); ++i) {
      const Range range = shard_range(size, i, GetParam());
      EXPECT_EQ(range.begin, end) << "size " << size << " ps " << i;
      EXPECT_LE(range.begin, range.end);
      end = range.end;
    }
    EXPECT_EQ(end, size);
  }
}

TEST_P(ShardRange, StartsOnAPageUnlessEmpty) {
  for (const std::size_t size : kSizes) {
    for (std::size_t i = 0; i < GetParam(); ++i) {
      const Range range = shard_range(size, i, GetParam());
      if (range.size() > 0) {
        EXPECT_EQ(range.begin % kShardAlignmentFloats, 0U) << "size " << size << " ps " << i;
      }
    }
  }
}

TEST_P(ShardRange, IsAsLongAsEveryOtherToAPage) {
  for (const std::size_t size : kSizes) {
    std::size_t longest = 0;
    std::size_t shortest = size;
    for (std::size_t i = 0; i < GetParam(); ++i) {
      // In started pages, because the vector's last page may be short.
      const std::size_t pages =
          (shard_range(size, i, GetParam()).size() + kShardAlignmentFloats - 1) /
          kShardAlignmentFloats;
      longest = std::max(longest, pages);
      shortest = std::min(shortest, pages);
    }
    EXPECT_LE(longest - shortest, 1U) << "size " << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, ShardRange, testing::Values(1, 2, 3, 5, 7, 64, 1000));

TEST(ShardRangeOfOne, IsTheWholeVector) { EXPECT_EQ(shard_range(79536, 0, 1), (Range{0, 79536})); }

TEST(ShardRangeBeyondThePages, IsEmpty) {
  EXPECT_EQ(shard_range(1500, 1, 5), (Range{1024, 1500}));
  EXPECT_EQ(shard_range(1500, 2, 5).size(), 0U);
  EXPECT_EQ(shard_range(1500, 4, 5).size(), 0U);
}

}  // namespace
}  // namespace disttf::math
