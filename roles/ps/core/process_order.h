// Which process of each trainer is the newest that this ps has heard of, from itself or from
// others: older ones are refused at each of its ranges, on every channel. See
// roles/run/incarnation.h.
//
// It is lost with the ps; another ps may know more, or less, but never thinks otherwise of two.
// Not thread-safe: the ps's one thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace disttf::roles {

class ProcessOrder {
 public:
  explicit ProcessOrder(std::size_t trainers) : newest_(trainers) {}

  // There is, or was, such a process. 0 is none.
  void learn(std::size_t rank, std::uint64_t incarnation) noexcept {
    if (incarnation > newest_[rank]) {
      has_replaced_ = has_replaced_ || newest_[rank] != 0;
      newest_[rank] = incarnation;
    }
  }
  [[nodiscard]] std::uint64_t newest(std::size_t rank) const noexcept { return newest_[rank]; }
  // A newer one is known.
  [[nodiscard]] bool is_replaced(std::size_t rank, std::uint64_t incarnation) const noexcept {
    return incarnation < newest_[rank];
  }
  // Whether, since the last call, one has been learnt of after which an older one does not count.
  [[nodiscard]] bool take_replacement() noexcept { return std::exchange(has_replaced_, false); }

 private:
  std::vector<std::uint64_t> newest_;  // incarnations, by rank
  bool has_replaced_ = false;
};

}  // namespace disttf::roles
