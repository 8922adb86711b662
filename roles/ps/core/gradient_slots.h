// The gradients of the step that is being collected: a slot for each, and their sum as a tree over
// the slots. Part of the synchronous step policies (step_policy.h).
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "math/aligned.h"
#include "math/kernels.h"
#include "math/tree_sum.h"
#include "roles/ps/core/step_policy.h"

namespace disttf::roles {

class GradientSlots {
 public:
  GradientSlots(std::size_t slots, std::size_t trainers, std::size_t floats, math::Isa isa)
      : floats_(floats), slots_(slots), inboxes_(trainers), sum_(slots, floats, isa) {}

  // Returns the slot's own memory. Once the slot is filled, the sum may be written there.
  [[nodiscard]] std::span<float> memory_of(std::size_t slot) { return sized(slots_[slot].own); }
  // Returns memory of the trainer, for a gradient whose slot another one may fill meanwhile.
  // Allocated on first use: most runs never need it.
  [[nodiscard]] std::span<float> inbox_of(std::size_t trainer) { return sized(inboxes_[trainer]); }

  // Adds a gradient that lies in the slot's own memory, or in a trainer's inbox, or that is lent.
  // REQUIRES: the slot is not filled. Returns 1.
  std::size_t add(std::size_t slot);
  std::size_t add_from_inbox(std::size_t slot, std::size_t trainer);
  std::size_t add_lent(std::size_t slot, LentGradient lent);
  // Adds the sum of a subtree, which lies in the inbox of the trainer `first` or is lent, and fills
  // the slots [first, first + count). It replaces those of their gradients that have arrived.
  // REQUIRES: one of the slots is not filled. Returns how many were not.
  std::size_t add_sum(std::size_t first, std::size_t count);
  std::size_t add_lent_sum(std::size_t first, std::size_t count, LentGradient lent);

  [[nodiscard]] bool is_filled(std::size_t slot) const { return slots_[slot].is_filled; }
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
  [[nodiscard]] std::size_t filled() const noexcept { return filled_; }
  // Returns the slots that are not filled, in order.
  [[nodiscard]] std::vector<std::size_t> missing() const;
  // Returns the sum of what was added, valid until clear(). REQUIRES: something was added.
  [[nodiscard]] StepGradients gradients(std::span<const std::uint64_t> trainers) {
    return {.sum = sum_.halves(), .count = filled_, .trainers = trainers, .tree = &sum_};
  }
  // Drops all gradients of the step.
  void clear() noexcept;

 private:
  struct Slot {
    // [floats]; empty until something is received.
    math::AlignedVector own;
    std::span<const float> gradient;     // in `own`, or
    std::shared_ptr<const void> memory;  // in this
    bool is_filled = false;
  };

  [[nodiscard]] std::span<float> sized(math::AlignedVector& memory) const;
  void take_inbox(Slot& slot, std::size_t trainer);
  void fill(Slot& slot) noexcept;
  std::size_t add_to_sum(std::size_t slot, std::span<float> own);
  std::size_t add_subtree(std::size_t first, std::size_t count, std::span<float> own);

  std::size_t floats_;
  std::vector<Slot> slots_;
  std::vector<math::AlignedVector> inboxes_;  // by rank
  std::size_t filled_ = 0;
  math::TreeSum sum_;  // of the filled slots
};

}  // namespace disttf::roles
