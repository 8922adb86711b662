// The newest process of each trainer that this ps has learned of, from a trainer or from another
// task. All ranges of the ps refuse older processes on every channel. See run/task.h.
//
// The record is lost with the ps. Another ps may have learned of more processes or fewer, but the
// order of any two is the same everywhere. Not thread-safe: the ps's only thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace disttf::roles {

class ProcessOrder {
 public:
  explicit ProcessOrder(std::size_t trainers) : newest_(trainers) {}

  // Records that this process exists or has existed. 0 is none.
  void learn(std::size_t rank, std::uint64_t incarnation) noexcept {
    if (incarnation > newest_[rank]) {
      has_replaced_ = has_replaced_ || newest_[rank] != 0;
      newest_[rank] = incarnation;
    }
  }
  [[nodiscard]] std::uint64_t newest(std::size_t rank) const noexcept { return newest_[rank]; }
  // Returns whether a newer process is recorded.
  [[nodiscard]] bool is_replaced(std::size_t rank, std::uint64_t incarnation) const noexcept {
    return incarnation < newest_[rank];
  }
  // Returns whether a process has been replaced since the last call.
  [[nodiscard]] bool take_replacement() noexcept { return std::exchange(has_replaced_, false); }

 private:
  std::vector<std::uint64_t> newest_;  // incarnations, by rank
  bool has_replaced_ = false;
};

}  // namespace disttf::roles
