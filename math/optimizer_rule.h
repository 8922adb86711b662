// Shared by the optimizers' files; optimizer_rules.h describes their content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "math/optimizer_spec.h"

namespace disttf::math {

inline constexpr std::size_t kMaxStateTensors = 2;

// A state tensor: its name in checkpoints, and its initial value. The same name in two optimizers
// implies the same value.
struct StateStart {
  std::string_view name;
  float value = 0;
};

}  // namespace disttf::math
