#include "roles/ps/core/gradient_slots.h"

#include <cassert>
#include <utility>

namespace disttf::roles {

std::span<float> GradientSlots::sized(math::AlignedVector& memory) const {
  if (memory.size() != floats_) {
    memory = math::AlignedVector(floats_);
  }
  return memory.span();
}

std::size_t GradientSlots::add(std::size_t slot) {
  slots_[slot].gradient = memory_of(slot);
  return add_to_sum(slot, slots_[slot].own.span());
}

std::size_t GradientSlots::add_from_inbox(std::size_t slot, std::size_t trainer) {
  take_inbox(slots_[slot], trainer);
  return add_to_sum(slot, slots_[slot].own.span());
}

// A gradient in the slot's own memory may be overwritten by a partial sum; a lent one may not.
std::size_t GradientSlots::add_lent(std::size_t slot, LentGradient lent) {
  slots_[slot].gradient = lent.gradient;
  slots_[slot].memory = std::move(lent.memory);
  return add_to_sum(slot, {});
}

std::size_t GradientSlots::add_sum(std::size_t first, std::size_t count) {
  take_inbox(slots_[first], first);
  slots_[first].memory.reset();
  return add_subtree(first, count, slots_[first].own.span());
}

std::size_t GradientSlots::add_lent_sum(std::size_t first, std::size_t count, LentGradient lent) {
  slots_[first].gradient = lent.gradient;
  slots_[first].memory = std::move(lent.memory);
  return add_subtree(first, count, {});
}

// Swapped, not copied: the slot's old memory becomes the trainer's next inbox.
void GradientSlots::take_inbox(Slot& slot, std::size_t trainer) {
  std::swap(slot.own, inboxes_[trainer]);
  slot.gradient = slot.own.span();
}

std::size_t GradientSlots::add_to_sum(std::size_t slot, std::span<float> own) {
  assert(!slots_[slot].is_filled);
  fill(slots_[slot]);
  sum_.add(slot, slots_[slot].gradient, own);
  return 1;
}

// The subtree's gradients that arrived before are in no sum beyond the subtree, since it was
// incomplete. So the slot's own memory is free again.
std::size_t GradientSlots::add_subtree(std::size_t first, std::size_t count, std::span<float> own) {
  const std::size_t before = filled_;
  for (std::size_t slot = first; slot < first + count; ++slot) {
    fill(slots_[slot]);
  }
  sum_.add_subtree(first, count, slots_[first].gradient, own);
  return filled_ - before;
}

void GradientSlots::fill(Slot& slot) noexcept {
  filled_ += slot.is_filled ? 0U : 1U;
  slot.is_filled = true;
}

std::vector<std::size_t> GradientSlots::missing() const {
  std::vector<std::size_t> missing;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!slots_[slot].is_filled) {
      missing.push_back(slot);
    }
  }
  return missing;
}

void GradientSlots::clear() noexcept {
  filled_ = 0;
  sum_.clear();
  for (Slot& slot : slots_) {
    slot.is_filled = false;
    slot.memory.reset();
  }
}

}  // namespace disttf::roles
