// SIGINT, SIGTERM and SIGHUP as an orderly request to stop, SIGUSR1 as one to save what there is,
// SIGUSR2 as one for a timeline of some steps. SIGHUP, which comes when a terminal goes away, stays
// ignored where it was so from the start (nohup).
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "net/transport/channel.h"
#include "roles/run/outcome.h"

namespace disttf::roles {

// From construction on these signals are blocked in this thread and those it starts, and taken
// by a thread of the watcher's own: no code runs in a signal handler. Construct it before any other
// thread.
class StopSignal {
 public:
  // `on_signal` runs on the watcher's thread, once, with the first signal; where it throws, as for
  // lack of memory, once more a little later.
  explicit StopSignal(std::function<void(int)> on_signal = {});
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The first signal that came, or 0.
  [[nodiscard]] int number() const noexcept { return number_.load(std::memory_order_relaxed); }
  // Ends waits when a signal has come.
  [[nodiscard]] const net::Interrupt& interrupt() const noexcept { return interrupt_; }
  // Ends waits as a signal does, because of `failure`. From any thread; only the first call counts.
  void stop_with(const Failure& failure);
  // The same, because of what a thread or coroutine has thrown: failure_of(exception).
  void stop_with(const std::exception_ptr& exception);
  // Whether somebody has asked, by SIGUSR1 or ask_to_save(), since the last call. From any thread;
  // in a task that saves nothing nobody looks.
  [[nodiscard]] bool take_save_request() noexcept {
    return asks_to_save_.load(std::memory_order_relaxed) && asks_to_save_.exchange(false);
  }
  void ask_to_save() noexcept { asks_to_save_ = true; }
  // How many steps somebody wants to see a timeline of, by SIGUSR2, since the last call; 0: nobody
  // does. sigqueue() says how many, kill() means kUsualTrace. From any thread.
  static constexpr std::uint32_t kUsualTrace = 50;
  void ask_to_trace(std::uint32_t steps) noexcept { asks_to_trace_ = steps; }
  [[nodiscard]] std::uint32_t take_trace_request() noexcept { return asks_to_trace_.exchange(0); }
  // Throws Failure when a signal has come (130 or 143), or that of stop_with().
  void throw_if_stopped() const;

 private:
  void watch(int signal_fd);
  bool tell();  // false: on_signal_ has thrown

  std::function<void(int)> on_signal_;
  std::atomic<int> number_ = 0;
  std::atomic<bool> asks_to_save_ = false;
  std::atomic<std::uint32_t> asks_to_trace_ = 0;
  std::atomic<bool> fails_ = false;  // somebody sets failure_, or has
  std::optional<Failure> failure_;   // constant once has_failed_
  std::atomic<bool> has_failed_ = false;
  const Failure no_memory_{kError, kNoMemory};  // made while there is some
  net::Interrupt interrupt_;                    // signalled
  net::Interrupt done_;                         // the watcher's thread may end
  std::thread thread_;
};

// Whether the process ignores the signal, as whoever has started it may have chosen (nohup).
[[nodiscard]] bool is_ignored(int number) noexcept;
// A handler that ends the process: by the signal itself, or as process 1 of a container, which no
// signal without a handler ends, with exit_code_for(number).
void end_by_signal(int number);

// "SIGTERM", "SIGINT" or "SIGHUP"; "a signal" for others.
[[nodiscard]] const char* signal_name(int number) noexcept;
// What a process ends with that `number` stopped: 128 + number.
[[nodiscard]] int exit_code_for(int number) noexcept;

}  // namespace disttf::roles
