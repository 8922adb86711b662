// Work that several threads do at once, whose results come in the order in which it was begun.
//
// Not thread-safe. What the work refers to must outlive the object, which waits for it.
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
  // `ahead`: so many are under way while one is used.
  explicit InOrder(std::size_t ahead) noexcept : ahead_(ahead) {}

  [[nodiscard]] bool is_full() const noexcept { return working_.size() > ahead_; }
  [[nodiscard]] bool is_empty() const noexcept { return working_.empty(); }
  // `work` is called once, on another thread.
  template <typename Work>
  void begin(Work work) {
    working_.push_back(std::async(std::launch::async, std::move(work)));
  }
  // What the oldest gives, or throws. REQUIRES: !is_empty().
  [[nodiscard]] Result next() {
    std::future<Result> first = std::move(working_.front());
    working_.pop_front();
    return first.get();
  }
  // The same, which calls `on_wait` ten times a second while it waits; that may throw.
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
