// SIGINT, SIGTERM and SIGHUP as an orderly request to stop, SIGUSR1 as a request to save, SIGUSR2
// as a request for a timeline of some steps. SIGHUP, which comes when a terminal is closed, stays
// ignored if it was ignored at the start (nohup).
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "net/tcp/channel.h"
#include "run/outcome.h"
#include "run/task.h"

namespace disttf::roles {

// From construction on these signals are blocked in this thread and those that it starts, and
// received by a thread of the watcher: no code runs in a signal handler. To be constructed before
// any other thread.
class StopSignal {
 public:
  // `on_signal` runs on the watcher's thread, once, with the first signal; if it throws, for
  // example for lack of memory, it is called again a little later.
  explicit StopSignal(std::function<void(int)> on_signal = {});
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Returns the first signal that came, or 0.
  [[nodiscard]] int number() const noexcept { return number_.load(std::memory_order_relaxed); }
  // Ends waits when a signal has come.
  [[nodiscard]] const net::Interrupt& interrupt() const noexcept { return interrupt_; }
  // Ends waits as a signal does, because of `failure`. Callable from any thread; only the first
  // call counts.
  void stop_with(const Failure& failure);
  // The same, because of an exception of a thread or coroutine: failure_of(exception).
  void stop_with(const std::exception_ptr& exception);
  // Returns whether a save was requested, by SIGUSR1 or ask_to_save(), since the last call.
  // Callable from any thread. A task that saves nothing does not call it.
  [[nodiscard]] bool take_save_request() noexcept {
    return asks_to_save_.load(std::memory_order_relaxed) && asks_to_save_.exchange(false);
  }
  void ask_to_save() noexcept { asks_to_save_ = true; }
  // Returns the number of steps of a timeline requested by SIGUSR2 since the last call; 0: none.
  // sigqueue() carries the number, kill() means kUsualTrace. Callable from any thread.
  static constexpr std::uint32_t kUsualTrace = 50;
  void ask_to_trace(std::uint32_t steps) noexcept { asks_to_trace_ = steps; }
  [[nodiscard]] std::uint32_t take_trace_request() noexcept { return asks_to_trace_.exchange(0); }
  // Throws Failure if a signal has come (130 or 143), or that of stop_with().
  void throw_if_stopped() const;

 private:
  void watch(int signal_fd);
  bool tell();  // false: on_signal_ has thrown

  std::function<void(int)> on_signal_;
  std::atomic<int> number_ = 0;
  std::atomic<bool> asks_to_save_ = false;
  std::atomic<std::uint32_t> asks_to_trace_ = 0;
  std::atomic<bool> fails_ = false;  // failure_ is being set, or is set
  std::optional<Failure> failure_;   // constant once has_failed_
  std::atomic<bool> has_failed_ = false;
  const Failure no_memory_{kError, kNoMemory};  // made while there is memory
  net::Interrupt interrupt_;                    // signalled
  net::Interrupt done_;                         // the watcher's thread may end
  std::thread thread_;
};

// Returns whether the process ignores the signal, as its parent may have chosen (nohup).
[[nodiscard]] bool is_ignored(int number) noexcept;
// A handler that ends the process: by the signal itself; or, as process 1 of a container, which a
// signal without a handler cannot end, with exit_code_for(number).
void end_by_signal(int number);

// "SIGTERM", "SIGINT" or "SIGHUP"; "a signal" for others.
[[nodiscard]] const char* signal_name(int number) noexcept;
// Returns the exit code of a process stopped by `number`: 128 + number.
[[nodiscard]] int exit_code_for(int number) noexcept;

// The end of a task whose run is over.

// Returns kDone, at once or after a signal, depending on `on_finish`; an earlier signal counts.
// `stop` is the one that watched for signals during the run.
[[nodiscard]] int finish(OnFinish on_finish, const StopSignal& stop);

// Logs that the task stays.
void log_idle();

}  // namespace disttf::roles
