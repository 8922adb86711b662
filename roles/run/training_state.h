// Everything that the rest of a run depends on, at one step boundary, besides its configuration:
// what a checkpoint holds and what a ps that lost its memory is set to. Steps are a function of
// it, so a run that goes on from any of its states ends with the same weights.
//
// Values only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "math/aligned.h"
#include "roles/run/early_end.h"

namespace disttf::roles {

struct TrainingState {
  // One tensor of the optimizer's, e.g. adam's "m": as long as the parameter vector.
  struct Tensor {
    std::string name;
    math::AlignedVector values;
  };

  std::uint64_t step = 0;               // updates that made it
  math::AlignedVector parameters = {};  // the whole vector, padding included
  // In the order of math::Optimizer::state(); empty: as a new optimizer begins.
  std::vector<Tensor> optimizer = {};
  EarlyEnd early_end = {};
  // It is the result of a run that has ended before its last step.
  [[nodiscard]] bool has_ended_early() const noexcept {
    return early_end.step != 0 && early_end.step == step;
  }
};

[[nodiscard]] TrainingState copy_of(const TrainingState& state);

}  // namespace disttf::roles
