// What no step should be made of: a gradient with values that are no numbers, or longer than the
// run allows (--max_gradient_norm). Of a trainer gone bad, or of a machine whose memory is.
//
// An honest trainer ends by itself before it pushes such a one, as soon as its loss is no number.
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
  // range, whose norm is never above that of the whole. One pass, in a fixed order: the same
  // verdict on every instruction set.
  [[nodiscard]] std::optional<std::string> fault_in(std::span<const float> gradient) const;

 private:
  math::Isa isa_;
  float max_norm_;                    // 0: any
  std::vector<math::Range> trained_;  // what is no running statistic, from the range's begin
};

}  // namespace disttf::roles
