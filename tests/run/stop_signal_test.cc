// A signal in a child process, so that gtest's process is unaffected.
#include "run/process/stop_signal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <new>
#include <stdexcept>
#include <string>

#include "net/waiting/interrupt.h"
#include "run/outcome.h"
#include "run/process/start_thread.h"

namespace disttf::roles {
namespace {

constexpr int kUnexpected = 99;
// Far longer than a wait takes that a signal ends. A wait that it does not end must not hang the
// test.
constexpr std::chrono::seconds kPatience{30};

// Returns the exit status of a child that runs `body`.
int status_of_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    int code = kUnexpected;
    try {
      code = body();
    } catch (const Failure& failure) {
      code = failure.exit_code();
    }
    _exit(code);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  return WEXITSTATUS(status);
}

// Raises the signal and runs until the requested stop, as a role does.
int run_until_stopped(int signal) {
  const StopSignal stop;
  kill(getpid(), signal);
  stop.interrupt().wait_until(net::Clock::now() + kPatience);
  stop.throw_if_stopped();
  return kUnexpected;
}

TEST(StopSignal, SigtermEndsAWaitAndTheTaskWith143) {
  EXPECT_EQ(status_of_child([] { return run_until_stopped(SIGTERM); }), kTerminated);
}

TEST(StopSignal, SigintEndsAWaitAndTheTaskWith130) {
  EXPECT_EQ(status_of_child([] { return run_until_stopped(SIGINT); }), kInterrupted);
}

TEST(StopSignal, Sigusr1AsksToSaveAndStopsNothing) {
  EXPECT_EQ(status_of_child([] {
              StopSignal stop;
              const bool before = stop.take_save_request();
              kill(getpid(), SIGUSR1);
              const auto deadline = net::Clock::now() + kPatience;
              bool is_asked = false;
              while (!is_asked && net::Clock::now() < deadline) {
                is_asked = stop.take_save_request();
              }
              stop.throw_if_stopped();
              return !before && is_asked && !stop.take_save_request() ? kDone : kUnexpected;
            }),
            kDone);
}

TEST(StopSignal, Sigusr1IsHeardWhereItWasIgnored) {
  EXPECT_EQ(status_of_child([] {
              std::signal(SIGUSR1, SIG_IGN);  // as main does
              kill(getpid(), SIGUSR1);        // lost: no StopSignal exists yet
              StopSignal stop;
              kill(getpid(), SIGUSR1);
              const auto deadline = net::Clock::now() + kPatience;
              while (!stop.take_save_request()) {
                if (net::Clock::now() >= deadline) {
                  return kUnexpected;
                }
              }
              return static_cast<int>(kDone);
            }),
            kDone);
}

TEST(StopSignal, Sigusr2AsksForATimelineOfSoManySteps) {
  EXPECT_EQ(status_of_child([] {
              StopSignal stop;
              const auto wait = [&stop] {
                const auto deadline = net::Clock::now() + kPatience;
                std::uint32_t steps = 0;
                while (steps == 0 && net::Clock::now() < deadline) {
                  steps = stop.take_trace_request();
                }
                return steps;
              };
              const bool before = stop.take_trace_request() != 0;
              kill(getpid(), SIGUSR2);
              const bool is_usual = wait() == StopSignal::kUsualTrace;
              sigval value{};
              value.sival_int = 7;
              sigqueue(getpid(), SIGUSR2, value);
              const bool is_told = wait() == 7;
              stop.throw_if_stopped();
              return !before && is_usual && is_told ? kDone : kUnexpected;
            }),
            kDone);
}

TEST(StopSignal, TheFirstSignalCounts) {
  EXPECT_EQ(status_of_child([] {
              const StopSignal stop;
              kill(getpid(), SIGTERM);
              stop.interrupt().wait_until(net::Clock::now() + kPatience);
              kill(getpid(), SIGINT);
              return stop.number() == SIGTERM ? 0 : kUnexpected;
            }),
            0);
}

TEST(StopSignal, CallsBackWithTheSignalsNumber) {
  EXPECT_EQ(status_of_child([] {
              net::Interrupt called;
              std::atomic<int> number = 0;
              const StopSignal stop([&](int signal) {
                number = signal;
                called.interrupt();
              });
              kill(getpid(), SIGTERM);
              called.wait_until(net::Clock::now() + kPatience);
              return number == SIGTERM ? 0 : kUnexpected;
            }),
            0);
}

TEST(StopSignal, CallsBackAgainWhereThereWasNoMemoryToTakeIt) {
  EXPECT_EQ(status_of_child([] {
              net::Interrupt called;
              std::atomic<int> calls = 0;
              const StopSignal stop([&](int) {
                if (++calls < 3) {
                  throw std::bad_alloc();
                }
                called.interrupt();
              });
              kill(getpid(), SIGTERM);
              called.wait_until(net::Clock::now() + kPatience);
              return calls == 3 ? 0 : kUnexpected;
            }),
            0);
}

TEST(StopSignal, ASignalOnTheWayOutKillsNothing) {
  EXPECT_EQ(status_of_child([] {
              { const StopSignal stop; }
              kill(getpid(), SIGTERM);
              return 0;
            }),
            0);
}

TEST(StopSignal, MayBeStoppedForAnotherReason) {
  EXPECT_EQ(status_of_child([] {
              StopSignal stop;
              stop.stop_with(Failure(kLostPeers, "first"));
              stop.stop_with(Failure(kUsage, "second"));
              stop.interrupt().wait_until(net::Clock::now() + kPatience);
              stop.throw_if_stopped();
              return kUnexpected;
            }),
            kLostPeers);
}

TEST(StopSignal, WithoutASignalNothingIsStopped) {
  EXPECT_EQ(status_of_child([] {
              const StopSignal stop;
              stop.throw_if_stopped();
              return stop.number() == 0 && !stop.interrupt().interrupted() ? 0 : kUnexpected;
            }),
            0);
}

TEST(StopSignal, TheSentenceNamesTheSignal) {
  EXPECT_EQ(status_of_child([] {
              const StopSignal stop;
              kill(getpid(), SIGTERM);
              stop.interrupt().wait_until(net::Clock::now() + kPatience);
              try {
                stop.throw_if_stopped();
              } catch (const Failure& failure) {
                return std::string(failure.what()) == "stopped by SIGTERM before the run finished"
                           ? 0
                           : kUnexpected;
              }
              return kUnexpected;
            }),
            0);
}

TEST(SignalName, KnowsTheTwo) {
  EXPECT_STREQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_STREQ(signal_name(SIGINT), "SIGINT");
  EXPECT_STREQ(signal_name(SIGUSR1), "a signal");
}

// Returns the failure with which a task ends if one of its threads does this. The test runs on a
// thread of its own, since the StopSignal blocks the signals of its thread only.
Failure failure_after(const std::function<void()>& body) {
  const auto task = [&body]() -> Failure {
    StopSignal stop;
    start_thread(stop, body).join();
    try {
      stop.throw_if_stopped();
    } catch (const Failure& failure) {
      EXPECT_TRUE(stop.interrupt().interrupted()) << "waiting threads were not notified";
      return failure;
    }
    return {kDone, "nothing"};
  };
  return std::async(std::launch::async, task).get();
}

TEST(StartThread, AThreadWithoutMemoryEndsTheTask) {
  const Failure failure = failure_after([] { throw std::bad_alloc(); });
  EXPECT_EQ(failure.exit_code(), kError);
  EXPECT_EQ(failure.what(), std::string(kNoMemory));
}

TEST(StartThread, WhatAThreadThrowsIsTheSentence) {
  const Failure failure = failure_after([] { throw std::runtime_error("the disk is gone"); });
  EXPECT_EQ(failure.exit_code(), kError);
  EXPECT_EQ(failure.what(), std::string("the disk is gone"));
}

TEST(StartThread, AFailureKeepsItsCode) {
  const Failure failure = failure_after([] { throw Failure(kLostPeers, "ps 1 is gone"); });
  EXPECT_EQ(failure.exit_code(), kLostPeers);
  EXPECT_EQ(failure.what(), std::string("ps 1 is gone"));
}

TEST(StartThread, AThreadThatEndsByItselfStopsNothing) {
  EXPECT_EQ(failure_after([] {}).exit_code(), kDone);
}

}  // namespace
}  // namespace disttf::roles
