#include "run/process/start_thread.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <new>
#include <stdexcept>
#include <string>

#include "run/outcome.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {
namespace {

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
