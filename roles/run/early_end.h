// What belongs to the state of a run that may end before its last step (--target_accuracy,
// --patience), as its step does: whoever leads the run next judges as this chief would have. Why it
// ends is roles/chief/core/early_stop.h.
#pragma once

#include <cstdint>

namespace disttf::roles {

// With --patience: of the evaluations on the way, the one with the least validation loss. The chief
// tells it the ps and writes it into checkpoints.
//
// Which one of two is the newer one is the step: a later one is the best only since it is better.
// One that is newer than the state a run has been set back to does no harm where every gradient
// counts: the run comes to the same evaluations again, and stops where it did.
struct BestEvaluation {
  std::uint64_t step = 0;  // whose parameters were evaluated; 0: there is none yet
  double loss = 0;         // validation cross-entropy

  // Of two that were heard of, the newer one.
  void learn(const BestEvaluation& other) noexcept {
    if (other.step > step) {
      *this = other;
    }
  }
  friend bool operator==(const BestEvaluation&, const BestEvaluation&) = default;
};

// As a checkpoint has it.
struct EarlyEnd {
  BestEvaluation best;
  std::uint64_t step = 0;  // whose parameters are the run's result; 0: of none yet
  friend bool operator==(const EarlyEnd&, const EarlyEnd&) = default;
};

}  // namespace disttf::roles
