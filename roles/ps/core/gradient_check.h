// What no step should be made of: a gradient with values that are no numbers, or longer than the
// run allows (--max_gradient_norm). It comes of a run that diverges, of a machine that errs, or of
// a trainer gone bad. (A trainer looks at its loss alone, which may be a number where a gradient is
// none.)
//
// A value. Const: callable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/kernels.h"
#include "math/parameter_layout.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

class GradientCheck {
 public:
  // `range`: this ps's part of the vector.
  GradientCheck(const RunConfig& config, math::Range range);

  // "has a norm of 31 here, --max_gradient_norm is 10"; nullopt: it may be used. `gradient`: of the
  // range; its norm is never above that of the whole. One pass, and with --max_gradient_norm
  // another, whose order is fixed: the same verdict on every instruction set.
  [[nodiscard]] std::optional<std::string> fault_in(std::span<const float> gradient) const;

 private:
  math::Isa isa_;
  double most_;                       // norm, with what rounding may add to it
  float max_norm_;                    // 0: any
  std::vector<math::Range> trained_;  // what is no running statistic, from the range's begin
};

}  // namespace disttf::roles
