// Detects gradients that no step should use: those with non-finite values, and those with a norm
// above the run's limit (--max_gradient_norm). They result from a diverging run, a hardware error
// or a faulty trainer. (A trainer checks only its loss, which can be finite where a gradient is
// not.)
//
// An immutable value: callable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/kernels.h"
#include "math/parameter_layout.h"
#include "run/run_config.h"

namespace disttf::roles {

class GradientCheck {
 public:
  // `range`: this ps's part of the vector.
  GradientCheck(const RunConfig& config, math::Range range);

  // Returns what is wrong with the gradient ("has a norm of 31 here, --max_gradient_norm is 10", or
  // how many of its values are not finite, and which variable has the first), or nullopt if it may
  // be used. `gradient`: of this range; its norm is never above that of the whole gradient. Makes
  // one pass, and with --max_gradient_norm another in a fixed order, so that the verdict is the
  // same on every instruction set.
  [[nodiscard]] std::optional<std::string> fault_in(std::span<const float> gradient) const;

 private:
  math::Isa isa_;
  double most_;                       // the largest allowed norm, with a margin for rounding
  float max_norm_;                    // 0: no limit
  math::ParameterLayout layout_;      // of the whole vector
  std::size_t begin_;                 // of the range
  std::vector<math::Range> trained_;  // all but running statistics, relative to the range's begin
};

}  // namespace disttf::roles
