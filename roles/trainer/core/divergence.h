// Judges whether a run that has made all its steps has learned anything.
//
// A learning rate that is far too large need not end in non-finite values: every hidden unit can
// become inactive, and then the model gives each example the same answer. Its loss is far above
// that of guessing, or close to it once the biases of the last layer have recovered; the weights
// stay as large as the rate made them. So the verdict uses the validation set and the weights at
// the end, and no earlier step: a loss that jumps and recovers is no failure. In sync mode all
// trainers judge the same weights, and reach the same verdict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "math/model.h"
#include "math/parameter_layout.h"

namespace disttf::roles {

enum class Learning : std::uint8_t {
  kLearned,
  kNothing,   // hardly better than guessing, but not far worse: also a run that has just begun
  kDiverged,  // not finite; or mostly wrong, and either far worse than guessing or with huge
              // weights
};

// Returns the verdict. Pure function. `guessing`: the loss of an untrained model that guesses
// (math::LossType::of_guessing). `weights`: the root mean square of the trained parameters.
[[nodiscard]] Learning judge(const math::Evaluation& validation, double guessing,
                             double weights) noexcept;

// Returns the root mean square of the trained parameters, without running statistics; 0 if there
// are none. Not finite if one of them is not.
[[nodiscard]] double root_mean_square(const math::ParameterLayout& layout,
                                      std::span<const float> parameters);

}  // namespace disttf::roles
