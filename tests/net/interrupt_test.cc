#include "net/waiting/interrupt.h"

#include <gtest/gtest.h>
#include <poll.h>

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

TEST(Overslept, TellsAStoppedProcessFromALateThread) {
  const Deadline due{1h};
  EXPECT_EQ(suspended_for(Deadline::max()), 0s);
  EXPECT_EQ(suspended_for(due, due - 1ms), 0s);
  EXPECT_EQ(suspended_for(due, due + 1ms), 0s);
  EXPECT_EQ(suspended_for(due, due + 1h), 1h);
}

TEST(FreezeWatch, TellsAStopFromAWaitThatWasAnnounced) {
  const Deadline start{1h};
  FreezeWatch watch(start);
  EXPECT_EQ(watch.missed(start, start + 10s), 0s);
  EXPECT_EQ(watch.missed(start + 10s), 0s) << "a wait";
  EXPECT_EQ(watch.now(), start + 10s);
  EXPECT_EQ(watch.missed(start + 17s), 7s) << "stopped between two waits";
  EXPECT_EQ(watch.missed(start + 17s + 100ms), 0s) << "busy";
  EXPECT_EQ(watch.missed(start + 18s, start + 20s), 900ms);
  EXPECT_EQ(watch.missed(start + 19s), 0s) << "something arrived";
  EXPECT_EQ(watch.missed(start + 19s, start + 20s), 0s);
  EXPECT_EQ(watch.missed(start + 30s), 10s) << "stopped in a wait";
}

}  // namespace
}  // namespace disttf::net
