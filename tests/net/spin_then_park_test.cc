#include "net/waiting/spin_then_park.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <thread>

#include "tests/one_processor.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

// A spin before sleeping affects only the time: the first waits spin, later ones do not.
TEST(SpinThenPark, AnswersLikeAnyWait) {
  SpinThenPark wait;
  Interrupt ready;
  Interrupt interrupt;
  for (int round = 0; round < 5; ++round) {
    std::array<pollfd, 2> fds{pollfd{ready.fd(), POLLIN, 0}};
    EXPECT_EQ(wait.wait_for_any(fds, interrupt, Clock::now() + 1ms), std::errc::timed_out);
  }
  std::array<pollfd, 2> fds{pollfd{ready.fd(), POLLIN, 0}};
  interrupt.interrupt();
  EXPECT_EQ(wait.wait_for_any(fds, interrupt, Deadline::max()), std::errc::operation_canceled);
  ready.interrupt();
  EXPECT_FALSE(wait.wait_for_any(fds, interrupt, Deadline::max()));
  EXPECT_EQ(fds[0].revents, POLLIN);
}

// Notices something at the `at`-th look, counted from 1; 0: never.
class CountingPoller final : public Poller {
 public:
  explicit CountingPoller(int at) : at_(at) {}
  [[nodiscard]] bool is_ready() noexcept override {
    ++looks_;
    polled_while_parked_ = polled_while_parked_ || parked_;
    return at_ != 0 && looks_ >= at_;
  }
  void set_parked(bool parked) noexcept override { parked_ = parked; }
  [[nodiscard]] int looks() const noexcept { return looks_; }
  [[nodiscard]] bool polled_while_parked() const noexcept { return polled_while_parked_; }
  [[nodiscard]] bool parked() const noexcept { return parked_; }

 private:
  const int at_;
  int looks_ = 0;
  bool parked_ = false;
  bool polled_while_parked_ = false;
};

TEST(SpinThenPark, EndsWhenSomethingIsSeen) {
  SpinThenPark wait;
  const Interrupt interrupt;
  const Interrupt never;
  CountingPoller poller(1);
  std::array<pollfd, 2> fds{pollfd{never.fd(), POLLIN, 0}};
  EXPECT_FALSE(wait.wait_for_any(fds, interrupt, Deadline::max(), &poller));
  EXPECT_EQ(poller.looks(), 1);
  EXPECT_EQ(fds[0].revents, 0);
  EXPECT_FALSE(poller.polled_while_parked());
}

// Something may arrive between the last look and the store of the parked flag.
TEST(SpinThenPark, PollsOnceMoreAfterItHasSetTheParkedFlag) {
  const Interrupt interrupt;
  const Interrupt never;
  SpinThenPark wait;
  std::array<pollfd, 2> fds{pollfd{never.fd(), POLLIN, 0}};
  CountingPoller in_vain(0);
  EXPECT_EQ(wait.wait_for_any(fds, interrupt, Deadline::min(), &in_vain), std::errc::timed_out);
  EXPECT_TRUE(in_vain.polled_while_parked());
  EXPECT_FALSE(in_vain.parked());
  CountingPoller at_once(1);  // the spin before was fruitless: this wait parks without a spin
  EXPECT_FALSE(wait.wait_for_any(fds, interrupt, Deadline::max(), &at_once));
  EXPECT_EQ(at_once.looks(), 1);
  EXPECT_TRUE(at_once.polled_while_parked());
  EXPECT_FALSE(at_once.parked());
}

TEST(SpinThenPark, IsWokenWhenItIsParked) {
  SpinThenPark wait;
  const Interrupt interrupt;
  const Interrupt never;
  for (int round = 0; round < 8; ++round) {
    std::array<pollfd, 2> in_vain{pollfd{never.fd(), POLLIN, 0}};
    EXPECT_EQ(wait.wait_for_any(in_vain, interrupt, Clock::now() + 1ms), std::errc::timed_out);
    Interrupt later;  // after a fruitless spin the next wait parks at once
    std::thread other([&] { later.interrupt(); });
    std::array<pollfd, 2> fds{pollfd{later.fd(), POLLIN, 0}};
    EXPECT_FALSE(wait.wait_for_any(fds, interrupt, Deadline::max()));
    other.join();
  }
}

void compute_for(Clock::duration duration) {
  const Deadline until = Clock::now() + duration;
  while (Clock::now() < until) {
  }
}

// A look takes 400 us and notices something at the third look, or when the wait parks, as it does
// after a long turn of another thread. It simulates a thread that computes for as long between the
// looks.
class SlowPoller final : public Poller {
 public:
  [[nodiscard]] bool is_ready() noexcept override {
    came_[std::min<std::size_t>(looks_, 2)] = Clock::now();
    compute_for(400us);
    return ++looks_ >= 3 || parked_;
  }
  void set_parked(bool parked) noexcept override { parked_ = parked; }
  // Returns when a look began; the first is 0. REQUIRES: there were that many looks.
  [[nodiscard]] Deadline began(std::size_t look) const noexcept { return came_[look]; }
  [[nodiscard]] std::size_t looks() const noexcept { return looks_; }

 private:
  std::array<Deadline, 3> came_{};
  std::size_t looks_ = 0;
  bool parked_ = false;
};

// Runs a wait that ends at once, work of 100 us, and a wait in which other threads seem to have the
// processor for 400 us. Returns how often the wait left the processor, or nothing if a real
// interruption distorted the measurement.
std::optional<std::uint64_t> times_left(bool may_leave) {
  SpinThenPark wait;
  wait.may_leave_processor(may_leave);
  const Interrupt interrupt;
  Interrupt ready;
  ready.interrupt();
  std::array<pollfd, 2> at_once{pollfd{ready.fd(), POLLIN, 0}};
  const Deadline begin = Clock::now();
  EXPECT_FALSE(wait.wait_for_any(at_once, interrupt, Deadline::max()));
  compute_for(100us);
  const Deadline worked = Clock::now();
  const Interrupt never;
  SlowPoller poller;
  std::array<pollfd, 2> fds{pollfd{never.fd(), POLLIN, 0}};
  EXPECT_FALSE(wait.wait_for_any(fds, interrupt, Deadline::max(), &poller));
  // 60 % of 600 us of work are less than a turn of 400 us; a turn of 1000 us is a long one.
  const bool is_as_meant =
      poller.looks() == 3 && poller.began(0) - begin < 600us && poller.began(1) - worked < 1000us;
  return is_as_meant ? std::optional(wait.times_left()) : std::nullopt;
}

// Repeats the measurement until one is undistorted.
std::optional<std::uint64_t> first_times_left(bool may_leave) {
  std::optional<std::uint64_t> times;
  for (int each = 0; each < 200 && !times; ++each) {
    times = times_left(may_leave);
  }
  return times;
}

TEST(SpinThenPark, LeavesAProcessorThatIsSharedWhereItMay) {
  const std::optional<std::uint64_t> times = first_times_left(/*may_leave=*/true);
  if (!times) {
    GTEST_SKIP() << "others keep this machine's processors: no wait was as meant";
  }
  EXPECT_EQ(*times, 1U);
}

TEST(SpinThenPark, LeavesNoProcessorUnlessItMay) {
  const std::optional<std::uint64_t> times = first_times_left(/*may_leave=*/false);
  if (!times) {
    GTEST_SKIP() << "others keep this machine's processors: no wait was as meant";
  }
  EXPECT_EQ(*times, 0U);
}

class SpinThenParkSpins : public testing::Test {
 protected:
  // Looks for the whole time without finding anything.
  void look_in_vain() {
    ASSERT_TRUE(spin_.begin(Deadline::max(), now_));
    while (spin_.goes_on(now_ += 100us)) {
    }
  }
  // Returns how many waits sleep without a look before the next look begins.
  int sleeps() {
    int times = 0;
    while (!spin_.begin(Deadline::max(), now_)) ++times;
    return times;
  }

  SpinThenPark spin_;
  Deadline now_ = Deadline() + 1h;
};

TEST_F(SpinThenParkSpins, BacksOffExponentiallyAfterFruitlessSpins) {
  for (const int times : {0, 1, 3, 7, 15, 31, 63, 63}) {
    EXPECT_EQ(sleeps(), times);
    while (spin_.goes_on(now_ += 100us)) {
    }
  }
}

TEST_F(SpinThenParkSpins, ALookThatHelpedForgivesTheOthers) {
  look_in_vain();
  EXPECT_EQ(sleeps(), 1);
  ASSERT_TRUE(spin_.goes_on(now_ += 100us));
  spin_.found();
  EXPECT_EQ(sleeps(), 0);
}

// A long turn counts as a fruitless spin however soon something arrives: if other threads keep the
// processor for so long, a sleeping thread gets it sooner.
TEST_F(SpinThenParkSpins, ALongTurnOfOthersIsALookInVain) {
  ASSERT_TRUE(spin_.begin(Deadline::max(), now_));
  ASSERT_TRUE(spin_.goes_on(now_ += 900us));
  EXPECT_FALSE(spin_.goes_on(now_ += 1000us));
  EXPECT_EQ(sleeps(), 1);
  spin_.found();  // found at once, which gives no information about turns
  look_in_vain();
  EXPECT_EQ(sleeps(), 3);
}

TEST_F(SpinThenParkSpins, LooksNoLongerThanUntilTheDeadline) {
  ASSERT_TRUE(spin_.begin(now_ + 200us, now_));
  EXPECT_TRUE(spin_.goes_on(now_ + 100us));
  EXPECT_FALSE(spin_.goes_on(now_ + 200us));
}

// Returns how many times yielding is skipped before the next time.
int skips(SpinThenPark& spin) {
  int times = 0;
  while (!spin.begin_once()) {
    ++times;
  }
  return times;
}

TEST(YieldOnce, YieldsWheneverThereIsNothingToDo) {
  SpinThenPark spin;
  for (int each = 0; each < 100; ++each) {
    EXPECT_TRUE(spin.begin_once());
    spin.end_once(999us);
  }
}

TEST(YieldOnce, BacksOffExponentiallyAfterLongTurnsOfOthers) {
  SpinThenPark spin;
  for (const int times : {0, 1, 3, 7, 15, 31, 63, 63}) {
    EXPECT_EQ(skips(spin), times);
    spin.end_once(1ms);
  }
}

TEST(YieldOnce, ManyShortTurnsForgiveTheLongOnes) {
  SpinThenPark spin;
  spin.end_once(3ms);
  EXPECT_EQ(skips(spin), 1);
  for (int each = 0; each < 31; ++each) {
    spin.end_once(500us);
  }
  spin.end_once(3ms);
  EXPECT_EQ(skips(spin), 3) << "one too few of them";
  for (int each = 0; each < 32; ++each) {
    spin.end_once(500us);
  }
  spin.end_once(3ms);
  EXPECT_EQ(skips(spin), 1);
}

TEST(YieldOnce, PollsAfterTheYieldAlone) {
  SpinThenPark spin;
  EXPECT_TRUE(spin.yield_once([] { return true; }));
  EXPECT_FALSE(spin.yield_once([] { return false; }));
  spin.end_once(1ms);
  int polls = 0;
  EXPECT_FALSE(spin.yield_once([&polls] { return ++polls > 0; })) << "skipped";
  EXPECT_EQ(polls, 0);
}

// A trainer that works for 400 us between two waits of 50 us.
class SpinThenParkLeaves : public testing::Test {
 protected:
  SpinThenParkLeaves() {
    spin_.may_leave_processor(true);
    wait();
  }
  // A wait in which nothing unusual happens. Returns whether it spins.
  bool wait(Clock::duration work = 400us) {
    const bool spins = spin_.begin(Deadline::max(), now_);
    if (spins) {
      spin_.found();
    }
    end(50us, work);
    return spins;
  }
  void wait(int times) {
    for (int each = 0; each < times; ++each) {
      wait();
    }
  }
  // A wait in which other threads have the processor for `turn`.
  bool leaves_after(Clock::duration turn) {
    EXPECT_TRUE(spin_.begin(Deadline::max(), now_));
    EXPECT_TRUE(spin_.goes_on(now_ + turn));
    const bool leaves = spin_.leaves();
    spin_.found();
    end(turn);
    return leaves;
  }
  // A wait that ended parked after such a turn, and those that then park at once.
  void give_up_after(Clock::duration turn) {
    EXPECT_TRUE(spin_.begin(Deadline::max(), now_));
    EXPECT_FALSE(spin_.goes_on(now_ + turn));
    end(turn);
    while (!wait()) {
    }
  }
  void end(Clock::duration waited, Clock::duration work = 400us) {
    spin_.end(now_ += waited);
    now_ += work;
  }
  // Returns how many more such turns occur before the trainer leaves the processor because of them.
  int times_until_left() {
    int times = 0;
    while (times < 1000 && !leaves_after(400us)) {
      ++times;
    }
    return times;
  }

  SpinThenPark spin_;
  Deadline now_{1h};
};

TEST_F(SpinThenParkLeaves, IsLeftToOneThatComputesAsLong) { EXPECT_TRUE(leaves_after(380us)); }

// For example beside a ps that computes an update.
TEST_F(SpinThenParkLeaves, IsKeptBesideOneThatComputesLess) {
  for (int each = 0; each < 100; ++each) {
    EXPECT_FALSE(leaves_after(150us));
  }
}

TEST_F(SpinThenParkLeaves, IsKeptBeforeTheFirstWaitHasEnded) {
  SpinThenPark first;
  first.may_leave_processor(true);
  EXPECT_TRUE(first.begin(Deadline::max(), now_));
  EXPECT_TRUE(first.goes_on(now_ + 400us));
  EXPECT_FALSE(first.leaves());
}

TEST_F(SpinThenParkLeaves, IsKeptWhereThereIsNoWorkToTell) {
  for (int each = 0; each < 200; ++each) {
    wait(0us);
  }
  EXPECT_FALSE(leaves_after(10us)) << "shorter than a move";
}

// A step in which several ps answer has several waits, most of them without work before.
TEST_F(SpinThenParkLeaves, TakesTheMostOfItsWork) {
  wait();
  for (int each = 0; each < 3; ++each) {
    wait(0us);
  }
  EXPECT_FALSE(leaves_after(150us));
  EXPECT_TRUE(leaves_after(400us));
}

TEST_F(SpinThenParkLeaves, IsLeftLessOftenWhereThatDoesNotHelp) {
  EXPECT_EQ(times_until_left(), 0);
  for (const int times : {1, 3, 7, 15, 31, 63, 63}) {
    EXPECT_EQ(times_until_left(), times);
  }
}

TEST_F(SpinThenParkLeaves, IsLeftAtOnceAgainAfterManyWaitsAlone) {
  EXPECT_EQ(times_until_left(), 0);
  EXPECT_EQ(times_until_left(), 1);
  wait(64);
  EXPECT_EQ(times_until_left(), 3) << "the count from before the reset";
  EXPECT_EQ(times_until_left(), 1);
}

// Beside a program that always computes: another processor would not be better.
TEST_F(SpinThenParkLeaves, IsKeptOnABusyMachine) {
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
TEST_F(SpinThenParkLeaves, CountsNoMove) {
  ASSERT_TRUE(spin_.begin(Deadline::max(), now_));
  const auto leaves = [this] { return spin_.goes_on(now_ += 400us) && spin_.leaves(); };
  EXPECT_TRUE(leaves());
  EXPECT_FALSE(leaves()) << "the move";
  EXPECT_FALSE(leaves()) << "it stays once after a move";
  EXPECT_TRUE(leaves());
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
