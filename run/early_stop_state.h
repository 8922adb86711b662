// The part of a run's state that early stopping needs (--target_accuracy, --patience): with it the
// next chief decides as this one would have. For the decision see roles/chief/core/early_stop.h.
#pragma once

#include <cstdint>

namespace disttf::roles {

// With --patience: the intermediate evaluation with the lowest validation loss. The chief sends it
// to the ps and writes it into checkpoints.
//
// Of two, the one with the higher step is the newer: a later evaluation is recorded only if it is
// better. One that is newer than the state that a run was rolled back to does no harm if every
// gradient counts: the run reaches the same evaluations again, and stops where it did.
struct BestEvaluation {
  std::uint64_t step = 0;  // of the evaluated parameters; 0: none yet
  double loss = 0;         // validation cross-entropy

  // Keeps the newer one of two.
  void learn(const BestEvaluation& other) noexcept {
    if (other.step > step) {
      *this = other;
    }
  }
  friend bool operator==(const BestEvaluation&, const BestEvaluation&) = default;
};

// As saved in a checkpoint.
struct EarlyStopState {
  BestEvaluation best;
  std::uint64_t step = 0;  // of the parameters that are the run's result; 0: none yet
  friend bool operator==(const EarlyStopState&, const EarlyStopState&) = default;
};

}  // namespace disttf::roles
