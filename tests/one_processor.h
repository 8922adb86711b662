// Runs code in a thread that is pinned to one processor.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace disttf {

// Calls `what` on one processor, and returns when it has finished.
template <typename What>
void on_one_processor(What what) {
  std::thread thread([&what] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    what();
  });
  thread.join();
}

}  // namespace disttf
