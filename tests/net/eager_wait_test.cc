#include "net/transport/eager_wait.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

// Looking before sleeping changes nothing but the time: the first waits look, later ones do not.
TEST(EagerWait, AnswersLikeAnyWait) {
  EagerWait wait;
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

// Sees something from the `at`-th look on, from 1; 0: never.
class CountingLookout final : public Lookout {
 public:
  explicit CountingLookout(int at) : at_(at) {}
  [[nodiscard]] bool sees() noexcept override {
    ++looks_;
    looked_asleep_ = looked_asleep_ || asleep_;
    return at_ != 0 && looks_ >= at_;
  }
  void set_asleep(bool asleep) noexcept override { asleep_ = asleep; }
  [[nodiscard]] int looks() const noexcept { return looks_; }
  [[nodiscard]] bool looked_asleep() const noexcept { return looked_asleep_; }
  [[nodiscard]] bool asleep() const noexcept { return asleep_; }

 private:
  const int at_;
  int looks_ = 0;
  bool asleep_ = false;
  bool looked_asleep_ = false;
};

TEST(EagerWait, EndsWhenSomethingIsSeen) {
  EagerWait wait;
  const Interrupt interrupt;
  const Interrupt never;
  CountingLookout lookout(1);
  std::array<pollfd, 2> fds{pollfd{never.fd(), POLLIN, 0}};
  EXPECT_FALSE(wait.wait_for_any(fds, interrupt, Deadline::max(), &lookout));
  EXPECT_EQ(lookout.looks(), 1);
  EXPECT_EQ(fds[0].revents, 0);
  EXPECT_FALSE(lookout.looked_asleep());
}

// Between the last look and the word that says so, something may have been left.
TEST(EagerWait, LooksOnceMoreWhenItHasSaidThatItSleeps) {
  const Interrupt interrupt;
  const Interrupt never;
  EagerWait wait;
  std::array<pollfd, 2> fds{pollfd{never.fd(), POLLIN, 0}};
  CountingLookout in_vain(0);
  EXPECT_EQ(wait.wait_for_any(fds, interrupt, Deadline::min(), &in_vain), std::errc::timed_out);
  EXPECT_TRUE(in_vain.looked_asleep());
  EXPECT_FALSE(in_vain.asleep());
  CountingLookout at_once(1);  // the wait before was in vain: this one sleeps without looking first
  EXPECT_FALSE(wait.wait_for_any(fds, interrupt, Deadline::max(), &at_once));
  EXPECT_EQ(at_once.looks(), 1);
  EXPECT_TRUE(at_once.looked_asleep());
  EXPECT_FALSE(at_once.asleep());
}

TEST(EagerWait, IsWokenWhenItSleeps) {
  EagerWait wait;
  const Interrupt interrupt;
  const Interrupt never;
  for (int round = 0; round < 8; ++round) {
    std::array<pollfd, 2> in_vain{pollfd{never.fd(), POLLIN, 0}};
    EXPECT_EQ(wait.wait_for_any(in_vain, interrupt, Clock::now() + 1ms), std::errc::timed_out);
    Interrupt later;  // after a look in vain the next wait sleeps at once
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

// Sees something at the third look, or when the wait sleeps, as it does after a long turn of
// somebody else. As if another thread that computes for 400 us were given way to between the looks.
class SlowLookout final : public Lookout {
 public:
  [[nodiscard]] bool sees() noexcept override {
    compute_for(400us);
    return ++looks_ >= 3 || asleep_;
  }
  void set_asleep(bool asleep) noexcept override { asleep_ = asleep; }

 private:
  int looks_ = 0;
  bool asleep_ = false;
};

// Waits, with work of 100 us before each, until a processor was left or `most` have been.
std::uint64_t times_left(EagerWait& wait, int most) {
  const Interrupt interrupt;
  const Interrupt never;
  for (int each = 0; each < most && wait.times_left() == 0; ++each) {
    compute_for(100us);
    SlowLookout lookout;
    std::array<pollfd, 2> fds{pollfd{never.fd(), POLLIN, 0}};
    EXPECT_FALSE(wait.wait_for_any(fds, interrupt, Deadline::max(), &lookout));
  }
  return wait.times_left();
}

// (How long the turns are depends on who else is on the machine: some wait is as meant.)
TEST(EagerWait, LeavesAProcessorThatIsSharedWhereItMay) {
  EagerWait may;
  may.may_leave_processor(true);
  if (times_left(may, 2000) == 0) {
    GTEST_SKIP() << "others kept the processor, so that no wait was as meant";
  }
  EXPECT_EQ(may.times_left(), 1U);
}

TEST(EagerWait, LeavesNoProcessorUnlessItMay) {
  EagerWait may_not;
  EXPECT_EQ(times_left(may_not, 20), 0U);
}

}  // namespace
}  // namespace disttf::net
