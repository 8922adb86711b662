#include "run/process/start_thread.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

namespace disttf::roles {
namespace {

// A ninth of the weight of a thread with nice value 0.
constexpr int kBackgroundNice = 10;

// How long starting a thread is retried, and the first pause between two attempts.
constexpr std::chrono::milliseconds kThreadPatience{2000};
constexpr std::chrono::milliseconds kFirstPause{10};

}  // namespace

std::thread start_thread(std::function<void()> body) {
  auto pause = kFirstPause;
  const auto deadline = std::chrono::steady_clock::now() + kThreadPatience;
  while (true) {
    try {
      // A copy of the function: it is still needed where the attempt fails.
      return std::thread(body);
    } catch (const std::system_error& error) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw std::system_error(error.code(),
                                "cannot start a thread, for lack of memory or by a limit on "
                                "threads (ulimit -v, ulimit -u)");
      }
    }
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

std::thread start_background_thread(std::function<void()> body) {
  return start_thread([body = std::move(body)] {
    // On Linux each thread has its own nice value. A failure to set it changes nothing.
    // The higher of the two, so that a process that was started with a higher nice value keeps it.
    const int nice = std::max(getpriority(PRIO_PROCESS, 0), kBackgroundNice);
    static_cast<void>(setpriority(PRIO_PROCESS, 0, nice));
    body();
  });
}

std::thread start_thread(StopSignal& stop, std::function<void()> body) {
  return start_thread([&stop, body = std::move(body)] {
    try {
      body();
    } catch (...) {
      stop.stop_with(std::current_exception());
    }
  });
}

}  // namespace disttf::roles
