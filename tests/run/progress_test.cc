#include "run/process/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>

#include "data/file.h"

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

}  // namespace
}  // namespace disttf::roles
