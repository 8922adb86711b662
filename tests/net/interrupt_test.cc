#include "net/interrupt.h"

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

}  // namespace
}  // namespace disttf::net
