// Compares vectors of a program's run bit by bit, and names the place of what it finds, as parts of
// a sentence: "variable 3 of 12, conv1.weight, element 17".
//
// Pure functions; callable from any thread. REQUIRES: each vector has the layout's size.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "math/parameter_layout.h"

namespace disttf::roles {

// The first element whose bits differ: "variable 3 of 12, conv1.weight, element 17: 0.123 and
// 0.124". What lies between two variables is not compared. nullopt: none.
[[nodiscard]] std::optional<std::string> bit_difference(const math::ParameterLayout& layout,
                                                        std::span<const float> first,
                                                        std::span<const float> second);

// The first element that is not finite: "variable 3 of 12, conv1.weight, element 17: nan". nullopt:
// none.
[[nodiscard]] std::optional<std::string> not_finite(const math::ParameterLayout& layout,
                                                    std::span<const float> values);

// The first float between two variables, or after the last, that is not 0: "float 2 behind
// variable 3 of 12, conv1.weight: 0.5". nullopt: none.
[[nodiscard]] std::optional<std::string> written_padding(const math::ParameterLayout& layout,
                                                         std::span<const float> values);

}  // namespace disttf::roles
