#include "run/result_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace disttf::roles {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::SizeIs;

constexpr std::array<std::string_view, 2> kNames = {"cat", "terrier"};

math::Evaluation two_classes() {
  return {.loss = 0.25, .correct = 15, .rows = 20, .classes = 2, .confusion = {9, 1, 4, 6}};
}

TEST(ClassTable, HasARowForEachClassThenWhichIsTakenForWhich) {
  EXPECT_THAT(class_table(two_classes(), kNames),
              ElementsAre("class     images  precision  recall",  //
                          "cat           10     0.6923  0.9000",  //
                          "terrier       10     0.8571  0.6000",  //
                          "class    judged to be",                //
                          "cat          9     1",                 //
                          "terrier      4     6"));
}

TEST(ClassTable, OfClassesWithoutNamesHasTheirNumbers) {
  EXPECT_THAT(class_table(two_classes(), {})[2], testing::StartsWith("1 "));
}

TEST(ClassTable, OfManyClassesHasNoConfusionMatrix) {
  const std::size_t classes = kMostClassesOfATable + 1;
  EXPECT_THAT(
      class_table(
          {.classes = classes, .confusion = std::vector<std::uint64_t>(classes * classes, 1)}, {}),
      SizeIs(1 + classes));
}

TEST(MetricsLine, IsAnObjectOnALineOfItsOwn) {
  const math::Evaluation validation = two_classes();
  math::Evaluation test = two_classes();
  test.loss = 0.5;
  const std::string line =
      metrics_line({.step = 7, .seconds = 1.5, .validation = &validation, .test = &test});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(json::parse(line), json::parse(R"({"step": 7, "seconds": 1.5,
      "validation_cross_entropy": 0.25, "validation_accuracy": 0.75,
      "test_cross_entropy": 0.5, "test_accuracy": 0.75, "result": false})"));
}

TEST(MetricsLine, OfTheResultHasTheClasses) {
  const math::Evaluation test = two_classes();
  const json line = json::parse(metrics_line(
      {.step = 9, .validation = &test, .test = &test, .result_classes = std::span(kNames)}));
  EXPECT_EQ(line["result"], true);
  EXPECT_EQ(line["confusion"], json::parse("[[9, 1], [4, 6]]"));
  ASSERT_THAT(line["classes"], SizeIs(2));
  EXPECT_EQ(line["classes"][1],
            json({{"class", "terrier"}, {"images", 10}, {"precision", 6.0 / 7}, {"recall", 0.6}}));
}

TEST(MetricsLine, HasNullForALossThatIsNoNumber) {
  math::Evaluation test = two_classes();
  test.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(json::parse(metrics_line({.validation = &test, .test = &test}))["test_cross_entropy"]
                  .is_null());
}

TEST(ResultLine, IsOfClassesOrOfNumbers) {
  EXPECT_EQ(result_line("MNIST", {.correct = 3, .rows = 4, .classes = 2}),
            "MNIST accuracy: 0.7500");
  const math::Evaluation numbers{
      .loss = 0.5, .rows = 4, .squared_error = 2890.125, .absolute_error = 43.5};
  EXPECT_EQ(result_line("diabetes", numbers),
            "diabetes mean absolute error: 43.5, mean squared error: 2890.12");
  EXPECT_EQ(validation_text(numbers), "validation mean squared error = 2890.12");
  EXPECT_EQ(test_text(numbers), "test mean absolute error = 43.5");
  EXPECT_EQ(json::parse(metrics_line({.step = 3, .validation = &numbers, .test = &numbers})),
            json::parse(R"({"step": 3, "seconds": 0.0, "result": false,
                            "validation_mean_squared_error": 2890.125,
                            "validation_mean_absolute_error": 43.5,
                            "test_mean_squared_error": 2890.125,
                            "test_mean_absolute_error": 43.5})"));
}

TEST(ClassTable, OfTwoClassesEndsWithTheAreaUnderTheCurve) {
  const math::Evaluation test{
      .correct = 3, .rows = 4, .classes = 2, .confusion = {2, 0, 1, 1}, .area_under_curve = 0.875};
  EXPECT_EQ(class_table(test, {}).back(), "area under the ROC curve: 0.8750");
}

}  // namespace
}  // namespace disttf::roles
