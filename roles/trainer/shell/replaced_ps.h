// Ps whose addresses lead to other processes than the open links, as noticed by the background
// thread and to be handled by the computing thread.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "net/wire/frame.h"

namespace disttf::roles {

class ReplacedPs {
 public:
  // The process at that address holds nothing of that generation, which all ps have held.
  void add(std::size_t ps, net::Generation generation) {
    const std::scoped_lock lock(mutex_);
    found_.emplace_back(ps, generation);
    is_any_ = true;
  }

  // Calls callback(ps, generation) for each one added since the last call. Costs one load if there
  // are none, as it is called in every step.
  template <typename Callback>
  void drain(Callback callback) {
    if (!is_any_) {
      return;
    }
    std::vector<std::pair<std::size_t, net::Generation>> found;
    {
      const std::scoped_lock lock(mutex_);
      is_any_ = false;
      found.swap(found_);
    }
    // Without the lock: `callback` may take long.
    for (const auto& [ps, generation] : found) {
      callback(ps, generation);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, net::Generation>> found_;
  std::atomic<bool> is_any_ = false;
};

}  // namespace disttf::roles
