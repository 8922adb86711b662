// Everything besides the configuration that the rest of a run depends on, at one step boundary: the
// content of a checkpoint, and what a ps without its state is restored to. Steps are a function of
// it, so a run that goes on from any of its states ends with the same weights.
//
// Values only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "math/aligned.h"
#include "run/early_stop_state.h"

namespace disttf::roles {

struct TrainingState {
  // One of the optimizer's tensors, e.g. adam's "m": as long as the parameter vector.
  struct Tensor {
    std::string name;
    math::AlignedVector values;
  };

  std::uint64_t step = 0;               // the number of updates that made it
  math::AlignedVector parameters = {};  // the whole vector, padding included
  // In the order of math::Optimizer::state(); empty: the optimizer starts from zero.
  std::vector<Tensor> optimizer = {};
  EarlyStopState early_stop_state = {};
  // Returns whether it is the result of a run that stopped early.
  [[nodiscard]] bool has_ended_early() const noexcept {
    return early_stop_state.step != 0 && early_stop_state.step == step;
  }
};

[[nodiscard]] TrainingState copy_of(const TrainingState& state);

}  // namespace disttf::roles
