#include "math/evaluation.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

namespace disttf::math {
namespace {

// 10, 5 and 0 images per class; no image is classified as class 2.
const Evaluation kThree{
    .correct = 12, .rows = 16, .classes = 3, .confusion = {8, 2, 0, 1, 4, 0, 0, 0, 0}};

TEST(Evaluation, CountsByLabelAndByJudgement) {
  EXPECT_EQ(kThree.count(0, 1), 2U);
  EXPECT_EQ(kThree.of_class(0), 10U);
  EXPECT_EQ(kThree.judged_as(0), 9U);
  EXPECT_EQ(kThree.judged_as(1), 6U);
}

TEST(Evaluation, HasPrecisionOfWhatIsJudgedAndRecallOfWhatIs) {
  EXPECT_DOUBLE_EQ(kThree.precision(0), 8.0 / 9);
  EXPECT_DOUBLE_EQ(kThree.recall(0), 0.8);
  EXPECT_DOUBLE_EQ(kThree.precision(1), 4.0 / 6);
  EXPECT_DOUBLE_EQ(kThree.recall(1), 0.8);
  EXPECT_DOUBLE_EQ(kThree.accuracy(), 0.75) << "of all images, those of no class among them";
}

TEST(Evaluation, IsZeroWhereItWouldBeAShareOfNothing) {
  EXPECT_EQ(kThree.precision(2), 0);
  EXPECT_EQ(kThree.recall(2), 0);
  EXPECT_EQ(Evaluation{}.accuracy(), 0);
}

std::optional<double> area(std::vector<Margin> margins) { return area_under_curve(margins); }

TEST(AreaUnderCurve, IsTheShareOfPairsInOrder) {
  EXPECT_EQ(area({{1, true}, {0, false}}), 1.0);
  EXPECT_EQ(area({{0, true}, {1, false}}), 0.0);
  // The six pairs: 4 is above 3, 1 and 2, and 2 is above 1: four of them, plus a tie of 2 with 2.
  EXPECT_EQ(area({{4, true}, {2, true}, {3, false}, {1, false}, {2, false}}), 4.5 / 6);
}

TEST(AreaUnderCurve, IsAHalfWhereNothingIsTold) {
  EXPECT_EQ(area({{1, true}, {1, false}, {1, false}, {1, true}}), 0.5);
}

TEST(AreaUnderCurve, IsNoneWithoutPairsOrNumbers) {
  EXPECT_EQ(area({}), std::nullopt);
  EXPECT_EQ(area({{1, true}, {2, true}}), std::nullopt);
  EXPECT_EQ(area({{1, true}, {std::numeric_limits<double>::quiet_NaN(), false}}), std::nullopt);
}

}  // namespace
}  // namespace disttf::math
