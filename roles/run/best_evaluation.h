// Of the evaluations on the way that a run with --patience has had, the one with the least
// validation loss. It belongs to the state of a run as its step does: the chief tells it the ps and
// writes it into checkpoints, so that whoever leads the run next judges as this chief would have.
//
// Which one of two is the newer one is the step: a later one is the best only since it is better.
// One that is newer than the state a run has been set back to does no harm where every gradient
// counts: the run comes to the same evaluations again, and stops where it did.
#pragma once

#include <cstdint>

namespace disttf::roles {

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

}  // namespace disttf::roles
