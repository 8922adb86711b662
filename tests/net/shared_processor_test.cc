#include "net/waiting/shared_processor.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>

#include "tests/one_processor.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

// A trainer that works for 400 us between two waits of 50 us.
class SharedProcessorTest : public testing::Test {
 protected:
  SharedProcessorTest() { wait(); }
  // A wait in which nothing unusual happens.
  void wait() {
    processor_.wait_begins(now_);
    now_ += 50us;
    processor_.wait_ends(now_);
    now_ += 400us;
  }
  void wait(int times) {
    for (int each = 0; each < times; ++each) {
      wait();
    }
  }
  // A wait in which other threads have the processor for `turn`.
  bool leaves_after(Clock::duration turn) {
    processor_.wait_begins(now_);
    const bool leaves = processor_.leaves_after(turn);
    now_ += turn;
    processor_.wait_ends(now_);
    now_ += 400us;
    return leaves;
  }
  // A wait that ended parked after such a turn.
  void give_up_after(Clock::duration turn) {
    processor_.wait_begins(now_);
    processor_.gave_up(turn);
    now_ += turn;
    processor_.wait_ends(now_);
    now_ += 400us;
  }
  // Returns how many more such turns occur before the trainer leaves the processor because of them.
  int times_until_left() {
    int times = 0;
    while (times < 1000 && !leaves_after(400us)) {
      ++times;
    }
    return times;
  }

  SharedProcessor processor_;
  Deadline now_{1h};
};

TEST_F(SharedProcessorTest, IsLeftToOneThatComputesAsLong) { EXPECT_TRUE(leaves_after(380us)); }

// For example beside a ps that computes an update.
TEST_F(SharedProcessorTest, IsKeptBesideOneThatComputesLess) {
  for (int each = 0; each < 100; ++each) {
    EXPECT_FALSE(leaves_after(150us));
  }
}

TEST_F(SharedProcessorTest, IsKeptWhereThereIsNoWorkToTell) {
  SharedProcessor first;
  first.wait_begins(now_);
  EXPECT_FALSE(first.leaves_after(400us)) << "of the first wait of all";
  for (int each = 0; each < 200; ++each) {
    first.wait_begins(now_);
    first.wait_ends(now_);  // without work before the next wait
  }
  first.wait_begins(now_);
  EXPECT_FALSE(first.leaves_after(10us)) << "shorter than a move";
}

// A step in which several ps answer has several waits, most of them without work before.
TEST_F(SharedProcessorTest, TakesTheMostOfItsWork) {
  for (int each = 0; each < 3; ++each) {
    processor_.wait_begins(now_);
    processor_.wait_ends(now_);
  }
  processor_.wait_begins(now_);
  EXPECT_FALSE(processor_.leaves_after(150us));
  EXPECT_TRUE(processor_.leaves_after(400us));
}

TEST_F(SharedProcessorTest, IsLeftLessOftenWhereThatDoesNotHelp) {
  EXPECT_EQ(times_until_left(), 0);
  for (const int times : {1, 3, 7, 15, 31, 63, 63}) {
    EXPECT_EQ(times_until_left(), times);
  }
}

TEST_F(SharedProcessorTest, IsLeftAtOnceAgainAfterManyWaitsAlone) {
  EXPECT_EQ(times_until_left(), 0);
  EXPECT_EQ(times_until_left(), 1);
  wait(64);
  EXPECT_EQ(times_until_left(), 3) << "the count from before the reset";
  EXPECT_EQ(times_until_left(), 1);
}

// Beside a program that always computes: another processor would not be better.
TEST_F(SharedProcessorTest, IsKeptOnABusyMachine) {
  give_up_after(3ms);
  give_up_after(3ms);
  EXPECT_TRUE(leaves_after(400us)) << "two may be a coincidence";
  give_up_after(3ms);
  give_up_after(3ms);
  wait(100);
  EXPECT_EQ(times_until_left(), 1000);
  wait(8192);
  EXPECT_LT(times_until_left(), 1000);
}

// The time of the move itself does not count as a turn of other threads.
TEST_F(SharedProcessorTest, CountsNoMove) {
  processor_.wait_begins(now_);
  EXPECT_TRUE(processor_.leaves_after(400us));
  EXPECT_FALSE(processor_.leaves_after(400us)) << "the move";
  EXPECT_FALSE(processor_.leaves_after(400us)) << "it stays once after a move";
  EXPECT_TRUE(processor_.leaves_after(400us));
}

int processors_allowed() {
  cpu_set_t all;
  return ::sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 0;
}

TEST(LeaveProcessor, GoesElsewhereAndMayComeBack) {
  const int allowed = processors_allowed();
  if (allowed < 2) {
    GTEST_SKIP() << "this test may run on one processor alone";
  }
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  // (Linux may move it back at once.)
  bool has_moved = false;
  for (int each = 0; each < 100 && !has_moved; ++each) {
    const int here = ::sched_getcpu();
    leave_processor();
    has_moved = ::sched_getcpu() != here;
  }
  EXPECT_TRUE(has_moved);
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&all, &after));
}

TEST(LeaveProcessor, StaysWhereThereIsNoOther) {
  on_one_processor([] {
    leave_processor();
    EXPECT_EQ(processors_allowed(), 1);
  });
}

}  // namespace
}  // namespace disttf::net
