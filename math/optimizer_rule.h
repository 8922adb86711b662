// What the optimizers' files share; optimizer_rules.h says what is in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "math/optimizer_spec.h"

namespace disttf::math {

inline constexpr std::size_t kMaxStateTensors = 2;

// A tensor of state: its name in checkpoints, and what it begins with. The same name in two
// optimizers begins with the same value.
struct StateStart {
  std::string_view name;
  float value = 0;
};

}  // namespace disttf::math
