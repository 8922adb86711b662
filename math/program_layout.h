// The variables of a user's program: a list instead of layers. docs/program_protocol.md has their
// rules. Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "math/parameter_layout.h"

namespace disttf::math {

inline constexpr std::size_t kMaxProgramVariables = 65'536;
inline constexpr std::size_t kMaxVariableNameBytes = 256;
inline constexpr std::size_t kMaxDimensions = 64;
inline constexpr float kMaxRateFactor = 1000;
// The largest vector of a program, in floats (8 GiB).
inline constexpr std::size_t kMaxProgramFloats = std::size_t{1} << 31U;
// What all names and shapes may take together as JSON, so that they fit into the configuration that
// the chief publishes (net::kMaxConfigBodyBytes).
inline constexpr std::size_t kMaxVariablesTextBytes = std::size_t{15} << 20U;

// Throws std::invalid_argument with one sentence: the variable, the field, its value, what is
// allowed. Offsets and sizes are not looked at.
void validate_variables(std::span<const Variable> variables);

// "fc1.bias [100], no weight decay, rate factor 0.1"
[[nodiscard]] std::string describe(const Variable& variable);

// Returns the first difference of two lists of variables as a part of a sentence: "variable 3 is
// fc2.weight [100, 10], the chief's is fc2.weight [100, 20]"; nullopt: they are the same. `owner`:
// whose `theirs` are.
[[nodiscard]] std::optional<std::string> variables_difference(
    std::span<const Variable> mine, std::span<const Variable> theirs,
    std::string_view owner = "the chief's");
// The same of two layouts.
[[nodiscard]] std::optional<std::string> layout_difference(const ParameterLayout& mine,
                                                           const ParameterLayout& theirs,
                                                           std::string_view owner = "the chief's");

}  // namespace disttf::math
