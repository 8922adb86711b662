// Whether a run that has made all its steps has learned anything.
//
// A learning rate that is far too large need not end in values that are not finite: every hidden
// unit can fall silent, and then the model gives each example the same answer. Its loss is far
// above that of guessing, or, once the biases of the last layer have recovered, close to it; the
// weights stay as large as the rate made them. So the judgement is about the validation set and the
// weights at the end, and about no step before: a loss that leaps and comes back is no failure. In
// sync mode all trainers judge the same weights, and judge alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "math/model.h"
#include "math/parameter_layout.h"

namespace disttf::roles {

enum class Learning : std::uint8_t {
  kLearned,
  kNothing,   // hardly better than guessing, nor far worse: also what has just begun
  kDiverged,  // not finite; or mostly wrong, and either far worse than guessing or with huge
              // weights
};

// Pure function. `guessing`: the loss of a model that knows nothing (math::LossType::of_guessing).
// `weights`: the root mean square of the trained parameters.
[[nodiscard]] Learning judge(const math::Evaluation& validation, double guessing,
                             double weights) noexcept;

// The root mean square of the trained parameters (no running statistics); 0 of none. Not finite
// where one of them is not.
[[nodiscard]] double root_mean_square(const math::ParameterLayout& layout,
                                      std::span<const float> parameters);

}  // namespace disttf::roles
