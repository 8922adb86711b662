// Whether a run that has made all its steps has come to anything.
//
// A learning rate that is far too large need not end in numbers that are none: at such a rate every
// hidden unit can fall silent, and what is left gives each image the same answer, with a loss that
// is finite. So the judgement is about the weights at the end, and about nothing on the way: a loss
// that leaps and comes back is no failure, and as the rate falls it may come back late. In sync
// mode all trainers judge the same weights, and judge alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include "math/model.h"

namespace disttf::roles {

enum class Learning : std::uint8_t {
  kLearned,
  kNothing,   // hardly better than guessing, nor far worse: also what has just begun
  kDiverged,  // not finite; or mostly wrong, and far worse than guessing
};

// Pure function. `guessing`: the loss of a model that knows nothing (math::LossType::of_guessing).
[[nodiscard]] Learning judge(const math::Evaluation& validation, double guessing) noexcept;

}  // namespace disttf::roles
