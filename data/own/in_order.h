// Runs work on several threads and returns the results in the order in which the work began.
//
// Not thread-safe. Everything the work refers to must outlive the object, whose destructor waits
// for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <future>
#include <utility>

namespace disttf::data {

template <typename Result>
class InOrder {
 public:
  // `ahead`: the number of items under way while one result is in use.
  explicit InOrder(std::size_t ahead) noexcept : ahead_(ahead) {}

  [[nodiscard]] bool is_full() const noexcept { return working_.size() > ahead_; }
  [[nodiscard]] bool is_empty() const noexcept { return working_.empty(); }
  // Calls `work` once, on another thread.
  template <typename Work>
  void begin(Work work) {
    working_.push_back(std::async(std::launch::async, std::move(work)));
  }
  // Returns or throws what the oldest item returns or throws. REQUIRES: !is_empty().
  [[nodiscard]] Result next() {
    std::future<Result> first = std::move(working_.front());
    working_.pop_front();
    return first.get();
  }
  // The same; calls `on_wait` ten times a second while it waits. `on_wait` may throw.
  template <typename OnWait>
  [[nodiscard]] Result next(const OnWait& on_wait) {
    constexpr std::chrono::milliseconds kInterval{100};
    while (working_.front().wait_for(kInterval) != std::future_status::ready) on_wait();
    return next();
  }

 private:
  std::size_t ahead_;
  std::deque<std::future<Result>> working_;
};

}  // namespace disttf::data
