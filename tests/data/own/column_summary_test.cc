#include "data/own/column_summary.h"

#include <gtest/gtest.h>

#include <vector>

namespace disttf::data {
namespace {

TEST(ColumnSums, AreOfEachColumn) {
  ColumnSums sums({"a", "b"});
  sums.add(std::vector<float>{1, 10, 3, 10});
  sums.add(std::vector<float>{5, 10});
  const auto columns = sums.summaries();
  EXPECT_EQ(columns[0].name, "a");
  EXPECT_EQ(columns[0].least, 1);
  EXPECT_EQ(columns[0].most, 5);
  EXPECT_DOUBLE_EQ(columns[0].mean, 3);
  EXPECT_DOUBLE_EQ(columns[0].deviation, 1.6329931618554521);  // sqrt(8/3)
  EXPECT_DOUBLE_EQ(columns[1].mean, 10);
  EXPECT_DOUBLE_EQ(columns[1].deviation, 0);
}

// The mean of the squares minus the square of the mean would lose all precision here.
TEST(ColumnSums, KeepTheDeviationOfLargeNumbers) {
  ColumnSums sums({"a"});
  for (int block = 0; block < 100; ++block) {
    sums.add(std::vector<float>{16'000'000, 16'000'001, 16'000'002});
  }
  EXPECT_NEAR(sums.summaries()[0].deviation, 0.816496580927726, 1e-9);  // sqrt(2/3)
}

TEST(RowCounters, SeeWhichColumnsCountRows) {
  RowCounters counters(3);
  counters.add(std::vector<float>{7, 1, 1, 8, 2, 2});
  counters.add(std::vector<float>{9, 2, 4});
  EXPECT_TRUE(counters.counts(0));
  EXPECT_FALSE(counters.counts(1));
  EXPECT_FALSE(counters.counts(2));
}

}  // namespace
}  // namespace disttf::data
