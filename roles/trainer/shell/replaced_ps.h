// What the background thread has found out and the computing thread is to act upon: ps whose
// addresses lead to other processes than the links that are open.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "net/wire/generation.h"

namespace disttf::roles {

class ReplacedPs {
 public:
  // Who answers there holds nothing of that generation, which all ps held once.
  void add(std::size_t ps, net::Generation generation) {
    const std::scoped_lock lock(mutex_);
    found_.emplace_back(ps, generation);
    is_any_ = true;
  }

  // All that were added since the last call: `hear(ps, generation)`. Costs one load where there are
  // none, as on the way of a step.
  template <typename Hear>
  void drain(Hear hear) {
    if (!is_any_) {
      return;
    }
    std::vector<std::pair<std::size_t, net::Generation>> found;
    {
      const std::scoped_lock lock(mutex_);
      is_any_ = false;
      found.swap(found_);
    }
    for (const auto& [ps, generation] : found) {
      hear(ps, generation);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::size_t, net::Generation>> found_;
  std::atomic<bool> is_any_ = false;
};

}  // namespace disttf::roles
