#include "run/process/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/file.h"
#include "run/result_text.h"

namespace disttf::roles {
namespace {

using std::chrono::duration;

class ProgressPipe : public testing::Test {
 protected:
  ProgressPipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    read_end_ = data::FileDescriptor(ends[0]);
    write_end_ = data::FileDescriptor(ends[1]);
  }
  // Returns everything in the pipe.
  std::string read_all() {
    std::string text(4096, '\0');
    const auto length = read(read_end_.number(), text.data(), text.size());
    text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return text;
  }
  data::FileDescriptor read_end_;
  data::FileDescriptor write_end_;
};

TEST_F(ProgressPipe, WhatIsWrittenIsReadBack) {
  ProgressWriter writer(write_end_.number());
  writer.write({.step = 1200, .train_steps = 2000, .loss = 0.0812, .images = 240'000});
  std::string record = read_all();
  ASSERT_EQ(record, "1200 2000 0.0812 240000\n");
  record.pop_back();
  const auto progress = parse_progress(record);
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->step, 1200U);
  EXPECT_EQ(progress->train_steps, 2000U);
  EXPECT_EQ(progress->loss, 0.0812);
  EXPECT_EQ(progress->images, 240'000U);
}

TEST_F(ProgressPipe, AProgramHasRows) {
  ProgressWriter writer(write_end_.number());
  writer.write({.step = 1, .train_steps = 2, .loss = 1, .images = 10, .are_rows = true});
  std::string record = read_all();
  ASSERT_EQ(record, "1 2 1 10 rows\n");
  record.pop_back();
  const auto progress = parse_progress(record);
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->images, 10U);
  EXPECT_THAT(progress_line(*progress, {}, std::chrono::seconds(1)), HasSubstr("  10 rows/s"));
}

TEST_F(ProgressPipe, RecordsThatFollowAtOnceAreLeftOut) {
  ProgressWriter writer(write_end_.number());
  for (std::uint64_t step = 1; step <= 50; ++step) {
    writer.write({.step = step, .train_steps = 1'000'000, .loss = 1, .images = step});
  }
  EXPECT_LT(read_all().size(), 50 * std::string("1 1000000 1 1\n").size());
}

TEST_F(ProgressPipe, TheLastRecordIsNeverLeftOut) {
  ProgressWriter writer(write_end_.number());
  writer.write({.step = 1, .train_steps = 2, .loss = 1, .images = 100});
  writer.write({.step = 2, .train_steps = 2, .loss = 0.5, .images = 200});
  EXPECT_EQ(read_all(), "1 2 1 100\n2 2 0.5 200\n");
}

TEST_F(ProgressPipe, AReaderThatHasGoneIsIgnored) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);  // as main does
  ProgressWriter writer(write_end_.number());
  read_end_ = data::FileDescriptor();
  for (const std::uint64_t step : {1U, 2U}) {
    writer.write({.step = step, .train_steps = 1, .loss = 1, .images = 1});
  }
  std::signal(SIGPIPE, before);
}

TEST_F(ProgressPipe, AReaderThatIsSlowIsIgnored) {
  const std::string filler(65'536, 'x');
  while (write(write_end_.number(), filler.data(), filler.size()) > 0) {
  }
  ASSERT_EQ(errno, EAGAIN);
  ProgressWriter writer(write_end_.number());
  writer.write({.step = 1, .train_steps = 1, .loss = 1, .images = 1});
}

TEST(ProgressWriter, WritesNowhereWithoutADescriptor) {
  ProgressWriter writer(-1);
  writer.write({.step = 1, .train_steps = 1, .loss = 1, .images = 1});
}

TEST(ParseProgress, RefusesWhatIsNoRecord) {
  for (const char* record : {"", " ", "\n", "1", "1 2", "1 2 3", "1 2 3 ", "1 2 3 4 5", "1 2 3 4 ",
                             " 1 2 3 4", "1  2 3 4", "-1 2 3 4", "1 2 3 -4", "1.5 2 3 4", "a 2 3 4",
                             "1 2 x 4", "1 2 3 4\n", "99999999999999999999 2 3 4"}) {
    EXPECT_FALSE(parse_progress(record)) << '"' << record << '"';
  }
}

TEST(ParseProgress, ReadsLargeNumbersAndExponents) {
  const auto progress = parse_progress("18446744073709551615 0 1.5e-07 0");
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->step, 18446744073709551615U);
  EXPECT_EQ(progress->loss, 1.5e-07);
}

constexpr Progress kFirst{.step = 10, .train_steps = 2000, .loss = 2, .images = 2000};

TEST(ProgressLine, TellsStepLossRateAndTimeLeft) {
  // 1190 steps in 5.95 s: 200 steps/s, so 800 more take 4 s.
  EXPECT_EQ(progress_line({.step = 1200, .train_steps = 2000, .loss = 0.08125, .images = 240'000},
                          kFirst, duration<double>(5.95)),
            "step 1200/2000  loss 0.0813  40000 images/s  0:04 left");
}

TEST(ProgressLine, CountsMinutes) {
  EXPECT_EQ(progress_line({.step = 20, .train_steps = 2000, .loss = 1, .images = 4000}, kFirst,
                          duration<double>(1)),
            "step 20/2000  loss 1.0000  2000 images/s  3:18 left");
}

TEST(ProgressLine, HasNoRateYetAtTheFirstRecord) {
  EXPECT_EQ(progress_line(kFirst, kFirst, duration<double>(0)), "step 10/2000  loss 2.0000");
  EXPECT_EQ(progress_line(kFirst, kFirst, duration<double>(3)), "step 10/2000  loss 2.0000");
}

TEST(ProgressLine, StatesNoRateFromNumbersThatWentBackwards) {
  const duration<double> second(1);
  EXPECT_EQ(
      progress_line({.step = 5, .train_steps = 2000, .loss = 1, .images = 4000}, kFirst, second),
      "step 5/2000  loss 1.0000");
  EXPECT_EQ(
      progress_line({.step = 20, .train_steps = 2000, .loss = 1, .images = 1}, kFirst, second),
      "step 20/2000  loss 1.0000");
  EXPECT_EQ(
      progress_line({.step = 2001, .train_steps = 2000, .loss = 1, .images = 4000}, kFirst, second),
      "step 2001/2000  loss 1.0000");
}

class ProgressMeterTest : public testing::Test {
 protected:
  // Returns the line after the record of this step, so many seconds after the start.
  std::string line(std::uint64_t step, double elapsed_seconds) {
    return meter_.on_record(
        {.step = step, .train_steps = 2000, .loss = 1, .images = 200 * step},
        ProgressMeter::TimePoint(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            duration<double>(elapsed_seconds))));
  }
  ProgressMeter meter_;
};

TEST_F(ProgressMeterTest, MeasuresFromTheFirstRecord) {
  EXPECT_EQ(line(10, 5), "step 10/2000  loss 1.0000");
  EXPECT_EQ(line(1010, 10), "step 1010/2000  loss 1.0000  40000 images/s  0:05 left");
}

TEST_F(ProgressMeterTest, DrawsNothingAfterTheLastStep) {
  EXPECT_EQ(line(2000, 5), "");
  EXPECT_EQ(meter_.on_chief_away(), "");
}

TEST_F(ProgressMeterTest, DrawsNothingBeforeTheFirstStep) { EXPECT_EQ(meter_.on_chief_away(), ""); }

TEST_F(ProgressMeterTest, KeepsTheStepWhileTheChiefIsAwayAndThenLeavesTheGapOut) {
  EXPECT_EQ(line(10, 5), "step 10/2000  loss 1.0000");
  EXPECT_EQ(meter_.on_chief_away(), "step 10/2000  waiting for the chief");
  EXPECT_EQ(line(11, 100), "step 11/2000  loss 1.0000");
  EXPECT_EQ(line(1011, 105), "step 1011/2000  loss 1.0000  40000 images/s  0:05 left");
}

TEST_F(ProgressMeterTest, MeasuresAnewWhenTheRunGoesBack) {
  EXPECT_EQ(line(10, 5), "step 10/2000  loss 1.0000");
  EXPECT_EQ(line(1010, 10), "step 1010/2000  loss 1.0000  40000 images/s  0:05 left");
  EXPECT_EQ(line(900, 11), "step 900/2000  loss 1.0000");
  EXPECT_EQ(line(1000, 12), "step 1000/2000  loss 1.0000  20000 images/s  0:10 left");
}

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
