#include "run/program/gradient_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "text/shortest_number.h"

namespace disttf::roles {
namespace {

std::string variable_text(const math::ParameterLayout& layout, std::size_t index) {
  return "variable " + std::to_string(index + 1) + " of " +
         std::to_string(layout.variables().size()) + ", " + layout.variables()[index].name;
}

std::string element_text(const math::ParameterLayout& layout, std::size_t index,
                         std::size_t element) {
  return variable_text(layout, index) + ", element " + std::to_string(element) + ": ";
}

}  // namespace

std::optional<std::string> bit_difference(const math::ParameterLayout& layout,
                                          std::span<const float> first,
                                          std::span<const float> second) {
  for (std::size_t index = 0; index < layout.variables().size(); ++index) {
    const math::Variable& variable = layout.variables()[index];
    const auto mine = first.subspan(variable.offset, variable.size);
    const auto theirs = second.subspan(variable.offset, variable.size);
    if (std::memcmp(mine.data(), theirs.data(), mine.size_bytes()) == 0) {
      continue;
    }
    // By their bits: NaN differs from itself as a number, and 0 does not differ from -0.
    const auto found = std::ranges::mismatch(mine, theirs, [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    });
    return element_text(layout, index, static_cast<std::size_t>(found.in1 - mine.begin())) +
           shortest_number(*found.in1) + " and " + shortest_number(*found.in2);
  }
  return std::nullopt;
}

std::optional<std::string> not_finite(const math::ParameterLayout& layout,
                                      std::span<const float> values) {
  for (std::size_t index = 0; index < layout.variables().size(); ++index) {
    const math::Variable& variable = layout.variables()[index];
    const auto mine = values.subspan(variable.offset, variable.size);
    const auto found =
        std::ranges::find_if_not(mine, [](float value) { return std::isfinite(value); });
    if (found != mine.end()) {
      return element_text(layout, index, static_cast<std::size_t>(found - mine.begin())) +
             shortest_number(*found);
    }
  }
  return std::nullopt;
}

std::optional<std::string> written_padding(const math::ParameterLayout& layout,
                                           std::span<const float> values) {
  const auto variables = layout.variables();
  for (std::size_t index = 0; index < variables.size(); ++index) {
    const std::size_t begin = variables[index].offset + variables[index].size;
    const std::size_t end =
        index + 1 < variables.size() ? variables[index + 1].offset : layout.size();
    const auto gap = values.subspan(begin, end - begin);
    const auto found = std::ranges::find_if(gap, [](float value) { return value != 0; });
    if (found != gap.end()) {
      return "float " + std::to_string(found - gap.begin() + 1) + " behind " +
             variable_text(layout, index) + ": " + shortest_number(*found);
    }
  }
  return std::nullopt;
}

}  // namespace disttf::roles
