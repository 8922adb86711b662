#include "net/waiting/spin_wait.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <thread>

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

// A spin before sleeping affects only the time: the first waits spin, later ones do not.
TEST(SpinWait, AnswersLikeAnyWait) {
  SpinWait wait;
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

TEST(SpinWait, EndsWhenSomethingIsSeen) {
  SpinWait wait;
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
TEST(SpinWait, PollsOnceMoreAfterItHasSetTheParkedFlag) {
  const Interrupt interrupt;
  const Interrupt never;
  SpinWait wait;
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

TEST(SpinWait, IsWokenWhenItIsParked) {
  SpinWait wait;
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
  SpinWait wait;
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

TEST(SpinWait, LeavesAProcessorThatIsSharedWhereItMay) {
  const std::optional<std::uint64_t> times = first_times_left(/*may_leave=*/true);
  if (!times) {
    GTEST_SKIP() << "others keep this machine's processors: no wait was as meant";
  }
  EXPECT_EQ(*times, 1U);
}

TEST(SpinWait, LeavesNoProcessorUnlessItMay) {
  const std::optional<std::uint64_t> times = first_times_left(/*may_leave=*/false);
  if (!times) {
    GTEST_SKIP() << "others keep this machine's processors: no wait was as meant";
  }
  EXPECT_EQ(*times, 0U);
}

}  // namespace
}  // namespace disttf::net
