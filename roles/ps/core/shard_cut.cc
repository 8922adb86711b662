// The part of a shard that keeps copies of its state, for checkpoints.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "roles/ps/core/shard.h"

namespace disttf::roles {

void Shard::make_cut(std::uint64_t sequence) {
  cut_wanted_.reset();
  auto cut = std::make_shared<Cut>();
  cut->sequence = sequence;
  cut->step = step_;
  try {
    cut->values = math::AlignedVector(state_size());
  } catch (const std::bad_alloc&) {
    return;  // training goes on; whoever asks for this cut is told that there is none
  }
  const std::span<const float> parameters = newest();
  float* to = std::copy(parameters.begin(), parameters.end(), cut->values.data());
  for (const math::StateTensor& tensor : optimizer_.state()) {
    to = std::copy(tensor.values.begin(), tensor.values.end(), to);
  }
  cut_ = std::move(cut);
}

void Shard::want_cut(std::uint64_t sequence, std::uint64_t step) {
  if (step <= step_) {
    make_cut(sequence);
  } else {
    cut_wanted_ = sequence;
  }
}

}  // namespace disttf::roles
