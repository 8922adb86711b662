// Coroutines for simulated code that runs in sequence, as a thread does. A Routine is awaited by
// another one. A process starts the outermost Routine and destroys it at its end, wherever it
// waits.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace disttf::sim {

template <typename Result>
class [[nodiscard]] Routine;

namespace detail {

struct PromiseBase {
  struct Final {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      const std::coroutine_handle<> next = ended.promise().awaiter;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() noexcept { return {}; }
  Final final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { exception = std::current_exception(); }

  std::coroutine_handle<> awaiter;
  std::exception_ptr exception;
};

template <typename Result>
struct Promise : PromiseBase {
  Routine<Result> get_return_object() noexcept;
  void return_value(Result result) { value.emplace(std::move(result)); }
  Result take() { return std::move(*value); }

  std::optional<Result> value;
};

template <>
struct Promise<void> : PromiseBase {
  Routine<void> get_return_object() noexcept;
  void return_void() noexcept {}
  void take() noexcept {}
};

}  // namespace detail

template <typename Result>
class [[nodiscard]] Routine {
 public:
  using promise_type = detail::Promise<Result>;
  using Handle = std::coroutine_handle<promise_type>;

  Routine() = default;
  explicit Routine(Handle handle) noexcept : handle_(handle) {}
  Routine(Routine&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Routine& operator=(Routine&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Routine() {
    if (handle_) {
      handle_.destroy();
    }
  }

  // Returns the handle of the outermost Routine.
  [[nodiscard]] std::coroutine_handle<> handle() const noexcept { return handle_; }
  [[nodiscard]] bool has_ended() const noexcept { return !handle_ || handle_.done(); }
  // Rethrows the exception that ended it, if any. REQUIRES: it has ended.
  void rethrow() const {
    if (handle_ && handle_.promise().exception) {
      std::rethrow_exception(handle_.promise().exception);
    }
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) noexcept {
    handle_.promise().awaiter = awaiter;
    return handle_;
  }
  Result await_resume() {
    rethrow();
    return handle_.promise().take();
  }

 private:
  Handle handle_;
};

namespace detail {

template <typename Result>
Routine<Result> Promise<Result>::get_return_object() noexcept {
  return Routine<Result>(std::coroutine_handle<Promise<Result>>::from_promise(*this));
}
inline Routine<void> Promise<void>::get_return_object() noexcept {
  return Routine<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

}  // namespace detail
}  // namespace disttf::sim
