// The part of a shard that keeps snapshot shards, for checkpoints.
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "roles/ps/core/shard.h"

namespace disttf::roles {

// Reuses the memory of the previous snapshot shard, whose pages are mapped already, unless a reader
// still holds it.
void Shard::begin_cut(std::uint64_t sequence) {
  assert(!is_behind());
  // One request, one snapshot: also if there is no memory for it.
  cut_wanted_.reset();
  if (!cut_ || cut_.use_count() > 1) {
    try {
      auto cut = std::make_shared<Cut>();
      cut->values = math::AlignedVector::for_overwrite(state_size());
      cut_ = std::move(cut);
    } catch (const std::bad_alloc&) {
      return;  // training goes on; a request for this snapshot finds none
    }
  }
  cut_->sequence = sequence;
  cut_->step = step_;
  cut_copied_ = 0;
}

bool Shard::copy_cut(std::size_t floats) {
  if (!cut_ || cut_copied_ == cut_->values.size()) {
    return false;
  }
  const std::size_t end = cut_copied_ + std::min(floats, cut_->values.size() - cut_copied_);
  std::size_t begin = 0;  // of the tensor, in the cut
  const auto copy = [&](std::span<const float> tensor) {
    const std::size_t until = std::min(end, begin + tensor.size());
    if (cut_copied_ < until) {
      std::copy(tensor.data() + (cut_copied_ - begin), tensor.data() + (until - begin),
                cut_->values.data() + cut_copied_);
      cut_copied_ = until;
    }
    begin += tensor.size();
  };
  copy(newest());
  for (const math::StateTensor& tensor : optimizer_.state()) {
    copy(tensor.values);
  }
  return true;
}

std::shared_ptr<const Cut> Shard::cut() {
  finish_cut();
  return cut_;
}

std::optional<CutName> Shard::cut_name() const noexcept {
  return cut_ ? std::optional(CutName{.sequence = cut_->sequence, .step = cut_->step})
              : std::nullopt;
}

void Shard::want_cut(std::uint64_t sequence, std::uint64_t step) {
  if (step <= step_) {
    begin_cut(sequence);
  } else {
    cut_wanted_ = sequence;
  }
}

}  // namespace disttf::roles
