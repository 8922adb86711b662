// The state of a run at one step boundary, whole and as a ps's shard.
//
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

namespace disttf::roles {

// The part of a run's state that early stopping needs (--target_accuracy, --patience): with it the
// next chief decides as this one would have. For the decision see roles/chief/core/early_stop.h.

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

// A snapshot shard: the training state of a ps's range at one step boundary, kept while training
// goes on.

// Identifies a snapshot shard.
struct SnapshotShardName {
  std::uint64_t sequence = 0;  // of the push that requested it
  std::uint64_t step = 0;
};

struct SnapshotShard {
  std::uint64_t sequence = 0;  // of the push that requested it
  std::uint64_t step = 0;
  // [1 + optimizer tensors, range.size()]: the parameters, then each of the optimizer's tensors.
  math::AlignedVector values;
};

}  // namespace disttf::roles
