#include "run/training_state.h"

#include <algorithm>

namespace disttf::roles {
namespace {

// AlignedVector is move-only, so that no state of gigabytes is copied by accident.
math::AlignedVector copy_of(const math::AlignedVector& values) {
  math::AlignedVector copy(values.size());
  std::copy_n(values.data(), values.size(), copy.data());
  return copy;
}

}  // namespace

TrainingState copy_of(const TrainingState& state) {
  TrainingState copy{.step = state.step,
                     .parameters = copy_of(state.parameters),
                     .early_stop_state = state.early_stop_state};
  for (const TrainingState::Tensor& tensor : state.optimizer) {
    copy.optimizer.push_back({.name = tensor.name, .values = copy_of(tensor.values)});
  }
  return copy;
}

}  // namespace disttf::roles
