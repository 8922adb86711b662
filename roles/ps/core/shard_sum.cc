// The part of a shard that concerns gradients that arrive as the sum of a host's trainers.
#include <utility>

#include "roles/ps/core/shard.h"

namespace disttf::roles {

// The subtree's gradients that arrived before are in no sum beyond the subtree, since it was
// incomplete. So the slot's own memory is free again.
void Shard::commit_sum(const PushId& push) {
  if (is_repeat(push) || push.step < step_) {
    ++counters_.repeats;  // the missing ones were complete before this sum was
    return;
  }
  Slot& slot = slots_[push.trainer];
  // Swapped, not copied: the slot's old memory becomes the inbox of the next sum.
  if (!push.in_place) {
    std::swap(slot.own, trainers_[push.trainer].inbox);
    slot.gradient = slot.own.span();
    slot.memory.reset();
  }
  const std::size_t before = arrived_;
  for (std::size_t rank = push.trainer; rank < push.trainer + push.summed; ++rank) {
    fill(rank);
  }
  // Each gradient that the sum brings counts as a push; settle() has counted one.
  counters_.pushes += arrived_ - before - 1;
  sum_.add_subtree(push.trainer, push.summed, slot.gradient,
                   push.in_place ? std::span<float>() : slot.own.span());
  apply_if_whole(push);
}

void Shard::fill(std::size_t trainer) noexcept {
  arrived_ += slots_[trainer].filled ? 0U : 1U;
  slots_[trainer].filled = true;
  trainers_[trainer].dropped = false;
  trainers_[trainer].settled = step_ + 1;
}

}  // namespace disttf::roles
