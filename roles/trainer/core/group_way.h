// How a trainer's gradient reaches each ps if other trainers run on its host: by itself, or in the
// sum of the host group, which the group's leader pushes (net/wire/cluster.h). That is decided once
// for each state that a gradient is computed from, and holds for repeats of the push; but a member
// whose leader has gone pushes its own.
//
// A value that decides nothing itself: net/memory/host_group.h describes how the trainers of a
// host agree. Not thread-safe: the computing thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "net/wire/cluster.h"
#include "net/wire/frame.h"

namespace disttf::roles {

class GroupWay {
 public:
  // A bit for each ps that receives the sum: bit i for ps i. Further ps receive each gradient.
  using Ranges = std::uint64_t;
  static constexpr std::size_t kMostRanges = 64;

  GroupWay(const net::Cluster& cluster, std::size_t rank)
      : group_(net::host_group_of(cluster, rank)), rank_(rank) {}

  [[nodiscard]] bool has_neighbours() const noexcept { return group_.count > 1; }
  [[nodiscard]] bool leads() const noexcept { return rank_ == group_.first; }
  // The other trainers of the group: 0 is the one whose rank follows the leader's.
  [[nodiscard]] std::size_t members() const noexcept { return group_.count - 1; }
  // Returns this trainer's number among them. REQUIRES: !leads().
  [[nodiscard]] std::size_t member() const noexcept { return rank_ - group_.first - 1; }

  // Returns whether the way of the gradient of that state has been decided.
  [[nodiscard]] bool knows(net::Generation generation, std::uint64_t step) const noexcept {
    return has_begun_ && generation_ == generation && step_ == step;
  }
  // The gradient of that state is to be pushed: by itself, until decide().
  void begin(net::Generation generation, std::uint64_t step) noexcept {
    has_begun_ = true;
    generation_ = generation;
    step_ = step;
    summed_ = 0;
  }
  void decide(Ranges summed) noexcept { summed_ = summed; }

  // Returns whether this ps receives the sum from the leader, and no body from members.
  [[nodiscard]] bool is_summed(std::size_t range) const noexcept {
    return range < kMostRanges && (summed_ >> range & 1U) != 0;
  }
  // Returns the header of the push to that ps, marked as a group sum if it is one.
  [[nodiscard]] net::FrameHeader marked(net::FrameHeader header, std::size_t range) const noexcept {
    if (is_summed(range)) {
      header.flags |= net::kFlagGroupSum;
    }
    return header;
  }
  // A member's leader has gone, after leaving the answers of the ps in `answered`. This trainer
  // pushes its own gradient to all other ps of the sum. Returns those: each was sent a header that
  // says that the gradient is in a sum.
  [[nodiscard]] Ranges part(Ranges answered) noexcept {
    return std::exchange(summed_, summed_ & answered) & ~answered;
  }
  // What the leader has left of that ps is not what the ps has answered to this trainer.
  void part_from(std::size_t range) noexcept { summed_ &= ~(Ranges{1} << range); }

 private:
  net::HostGroup group_;
  std::size_t rank_;
  bool has_begun_ = false;
  net::Generation generation_ = 0;
  std::uint64_t step_ = 0;
  Ranges summed_ = 0;
};

}  // namespace disttf::roles
