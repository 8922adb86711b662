#include "net/transport/interrupt.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <csignal>
#include <thread>

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

Interrupt* interrupted_by_signal = nullptr;

TEST(Interrupt, StaysSet) {
  Interrupt interrupt;
  EXPECT_FALSE(interrupt.interrupted());
  interrupt.interrupt();
  EXPECT_TRUE(interrupt.interrupted());
  EXPECT_TRUE(interrupt.interrupted());
}

TEST(Interrupt, EndsAWaitFromAnotherThread) {
  Interrupt interrupt;
  std::thread other([&] { interrupt.interrupt(); });
  EXPECT_TRUE(interrupt.wait_until(Deadline::max()));
  other.join();
}

TEST(Interrupt, EndsAWaitFromASignalHandler) {
  Interrupt interrupt;
  interrupted_by_signal = &interrupt;
  const auto before = std::signal(SIGUSR1, [](int) { interrupted_by_signal->interrupt(); });
  std::raise(SIGUSR1);
  EXPECT_TRUE(interrupt.wait_until(Deadline::max()));
  std::signal(SIGUSR1, before);
}

TEST(Interrupt, WaitEndsAtTheDeadline) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.wait_until(Clock::now() + 2ms));
}

TEST(WaitFor, TakesDeadlinesOfAnyKind) {
  const Interrupt interrupt;
  EXPECT_EQ(wait_for(-1, POLLIN, interrupt, Deadline::min()), std::errc::timed_out);
}

TEST(WaitFor, PutsReadinessBeforeTheInterrupt) {
  Interrupt ready;
  Interrupt interrupt;
  ready.interrupt();
  interrupt.interrupt();
  EXPECT_FALSE(wait_for(ready.fd(), POLLIN, interrupt, Deadline::max()));
}

class EagernessTest : public ::testing::Test {
 protected:
  // All the time passes without what is waited for.
  void look_in_vain() {
    ASSERT_TRUE(eagerness_.begin(Deadline::max(), now_));
    while (eagerness_.goes_on(now_ += 100us)) {
    }
  }
  // How many waits are slept through before the next look, which is begun.
  int sleeps() {
    int times = 0;
    while (!eagerness_.begin(Deadline::max(), now_)) ++times;
    return times;
  }

  Eagerness eagerness_;
  Deadline now_ = Deadline() + 1h;
};

TEST_F(EagernessTest, AfterLooksInVainItSleepsMoreAndMoreTimes) {
  for (const int times : {0, 1, 3, 7, 15, 31, 63, 63}) {
    EXPECT_EQ(sleeps(), times);
    while (eagerness_.goes_on(now_ += 100us)) {
    }
  }
}

TEST_F(EagernessTest, ALookThatHelpedForgivesTheOthers) {
  look_in_vain();
  EXPECT_EQ(sleeps(), 1);
  ASSERT_TRUE(eagerness_.goes_on(now_ += 100us));
  eagerness_.helped();
  EXPECT_EQ(sleeps(), 0);
}

// However soon it has come: where others have the processor for so long, a sleeper gets it sooner.
TEST_F(EagernessTest, ALongTurnOfOthersIsALookInVain) {
  ASSERT_TRUE(eagerness_.begin(Deadline::max(), now_));
  ASSERT_TRUE(eagerness_.goes_on(now_ += 900us));
  EXPECT_FALSE(eagerness_.goes_on(now_ += 1000us));
  EXPECT_EQ(sleeps(), 1);
  eagerness_.helped();  // it was there at once, which says nothing of their turns
  look_in_vain();
  EXPECT_EQ(sleeps(), 3);
}

TEST_F(EagernessTest, LooksNoLongerThanUntilTheDeadline) {
  ASSERT_TRUE(eagerness_.begin(now_ + 200us, now_));
  EXPECT_TRUE(eagerness_.goes_on(now_ + 100us));
  EXPECT_FALSE(eagerness_.goes_on(now_ + 200us));
}

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

TEST(Overslept, TellsAStoppedProcessFromALateThread) {
  const Deadline due{1h};
  EXPECT_EQ(overslept(Deadline::max()), 0s);
  EXPECT_EQ(overslept(due, due - 1ms), 0s);
  EXPECT_EQ(overslept(due, due + 1ms), 0s);
  EXPECT_EQ(overslept(due, due + 1h), 1h);
}

TEST(FreezeWatch, TellsAStopFromAWaitThatWasAnnounced) {
  const Deadline start{1h};
  FreezeWatch watch(start);
  EXPECT_EQ(watch.missed(start, start + 10s), 0s);
  EXPECT_EQ(watch.missed(start + 10s), 0s) << "the wait";
  EXPECT_EQ(watch.now(), start + 10s);
  EXPECT_EQ(watch.missed(start + 17s), 7s) << "stopped between two waits";
  EXPECT_EQ(watch.missed(start + 17s + 100ms), 0s) << "busy";
  EXPECT_EQ(watch.missed(start + 18s, start + 20s), 900ms);
  EXPECT_EQ(watch.missed(start + 19s), 0s) << "something came";
  EXPECT_EQ(watch.missed(start + 19s, start + 20s), 0s);
  EXPECT_EQ(watch.missed(start + 30s), 10s) << "stopped in a wait";
}

}  // namespace
}  // namespace disttf::net
