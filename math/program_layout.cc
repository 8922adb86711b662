#include "math/program_layout.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "math/optimizer.h"
#include "text/shortest_number.h"

namespace disttf::math {
namespace {

// Of files in the format safetensors, where it is no tensor's name.
constexpr std::string_view kReservedName = "__metadata__";

// Its number counts from 1.
std::string place_text(std::size_t index) { return "variable " + std::to_string(index + 1); }

[[noreturn]] void refuse_variable(std::size_t index, const std::string& what) {
  throw std::invalid_argument(place_text(index) + ": " + what);
}

void check_variable_name(std::size_t index, std::string_view name) {
  // Names are shown in sentences and tables: a blank or a control character could forge them.
  const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
  if (name.empty() || name.size() > kMaxVariableNameBytes || !std::ranges::all_of(name, is_plain)) {
    refuse_variable(index, "its name is not 1 to " + std::to_string(kMaxVariableNameBytes) +
                               " printable ASCII characters without blanks");
  }
  if (name == kReservedName) {
    refuse_variable(index,
                    "the name " + std::string(name) + " is not allowed, since files need it");
  }
}

// Returns the floats of the variable with its padding.
std::size_t check_shape(std::size_t index, const Variable& variable) {
  if (variable.shape.size() > kMaxDimensions) {
    refuse_variable(index, variable.name + " has " + std::to_string(variable.shape.size()) +
                               " dimensions, " + std::to_string(kMaxDimensions) + " are allowed");
  }
  std::size_t size = 1;
  for (const std::size_t length : variable.shape) {
    // A division, since the product could overflow.
    if (length == 0 || length > kMaxProgramFloats / size) {
      refuse_variable(index, variable.name + " " + shape_text(variable.shape) +
                                 " is empty, or has more than 2147483648 numbers");
    }
    size *= length;
  }
  return (size + kVariableAlignmentFloats - 1) / kVariableAlignmentFloats *
         kVariableAlignmentFloats;
}

void check_numbers(std::size_t index, const Variable& variable) {
  // The negations include NaN.
  if (const float factor = variable.rate_factor; !(factor >= 0 && factor <= kMaxRateFactor)) {
    refuse_variable(index, "the rate_factor of " + variable.name + " is " +
                               shortest_number(factor) + ", it must be from 0 to 1000");
  }
  if (!variable.momentum) {
    return;
  }
  if (const float momentum = *variable.momentum; !(momentum >= 0 && momentum < 1)) {
    refuse_variable(index, "the momentum of " + variable.name + " is " + shortest_number(momentum) +
                               ", it must be at least 0 and below 1");
  }
  if (variable.rate_factor != 1) {
    refuse_variable(index,
                    variable.name +
                        " has a momentum and a rate_factor: a running statistic has no learning "
                        "rate");
  }
}

// The bytes that it takes as JSON, with the other fields at their longest.
std::size_t text_bytes(const Variable& variable) {
  // ["",[],{"decays":false,"rate_factor":1.1754945e-38}],
  constexpr std::size_t kAround = 56;
  std::size_t lengths = 0;
  for (const std::size_t length : variable.shape) {
    lengths += std::to_string(length).size() + 1;
  }
  const auto escaped =
      std::ranges::count_if(variable.name, [](char c) { return c == '"' || c == '\\'; });
  return kAround + variable.name.size() + static_cast<std::size_t>(escaped) + lengths;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "w:0-512" -> "w": the name of a part of a variable in a sharded checkpoint.
std::string_view without_part(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) {
    return name;
  }
  const std::string_view part = name.substr(colon + 1);
  const std::size_t dash = part.find('-');
  const bool is_part = dash != std::string_view::npos && is_digits(part.substr(0, dash)) &&
                       is_digits(part.substr(dash + 1));
  return is_part ? name.substr(0, colon) : name;
}

// "w/m" -> "w": the name of an optimizer's tensor for a variable.
std::string_view without_state(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const bool is_state =
      slash != std::string_view::npos && is_state_tensor_name(name.substr(slash + 1));
  return is_state ? name.substr(0, slash) : name;
}

// A checkpoint names the optimizer's tensors and the parts of variables after the variables. Two
// tensors of one name would be one.
void check_names_in_files(std::span<const Variable> variables,
                          std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const std::string_view name = variables[i].name;
    const std::string_view whole = without_part(name);
    for (const std::string_view other : {whole, without_state(whole)}) {
      if (other != name && std::ranges::binary_search(names, other)) {
        refuse_variable(i, "the name " + std::string(name) + " is that of a tensor for " +
                               std::string(other) + " in a checkpoint; rename one of them");
      }
    }
  }
}

// In order. A search among them takes the same time whatever names a peer has chosen.
std::vector<std::string_view> sorted_names(std::span<const Variable> variables) {
  std::vector<std::string_view> names;
  for (const Variable& variable : variables) {
    names.emplace_back(variable.name);
  }
  std::ranges::sort(names);
  return names;
}

// REQUIRES: `names` are those of the variables, in order.
void check_unique(std::span<const Variable> variables, std::span<const std::string_view> names) {
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) {
    return;
  }
  const auto has_it = [name = *twice](const Variable& each) { return each.name == name; };
  const auto first = std::ranges::find_if(variables, has_it);
  const auto second = std::find_if(first + 1, variables.end(), has_it);
  refuse_variable(static_cast<std::size_t>(second - variables.begin()),
                  "the name " + std::string(*twice) + " is another variable's already");
}

}  // namespace

void validate_variables(std::span<const Variable> variables) {
  if (variables.empty() || variables.size() > kMaxProgramVariables) {
    throw std::invalid_argument("variables: " + std::to_string(variables.size()) +
                                " are not allowed, there must be from 1 to " +
                                std::to_string(kMaxProgramVariables));
  }
  std::size_t floats = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Variable& variable = variables[i];
    check_variable_name(i, variable.name);
    // At most 2^16 times 2^31: the sum cannot overflow.
    floats += check_shape(i, variable);
    check_numbers(i, variable);
    bytes += text_bytes(variable);
  }
  if (floats > kMaxProgramFloats) {
    throw std::invalid_argument("variables: they have " + std::to_string(floats) +
                                " numbers with their padding, 2147483648 are allowed");
  }
  if (bytes > kMaxVariablesTextBytes) {
    throw std::invalid_argument("variables: their names and shapes take " + std::to_string(bytes) +
                                " bytes, " + std::to_string(kMaxVariablesTextBytes) +
                                " are allowed");
  }
  const std::vector<std::string_view> names = sorted_names(variables);
  check_unique(variables, names);
  check_names_in_files(variables, names);
}

std::string describe(const Variable& variable) {
  std::string text = variable.name + " " + shape_text(variable.shape);
  if (variable.momentum) {
    text += ", running statistic with momentum " + shortest_number(*variable.momentum);
  }
  if (!variable.decays) {
    text += ", no weight decay";
  }
  if (variable.rate_factor != 1) {
    text += ", rate factor " + shortest_number(variable.rate_factor);
  }
  return text;
}

std::optional<std::string> variables_difference(std::span<const Variable> mine,
                                                std::span<const Variable> theirs,
                                                std::string_view owner) {
  const std::string separator = ", " + std::string(owner) + " ";
  for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    if (i >= mine.size()) {
      return "there is no " + place_text(i) + separator + "is " + describe(theirs[i]);
    }
    if (i >= theirs.size()) {
      return place_text(i) + " is " + describe(mine[i]) + separator + "are only " +
             std::to_string(theirs.size());
    }
    if (mine[i] != theirs[i]) {
      return place_text(i) + " is " + describe(mine[i]) + separator + "is " + describe(theirs[i]);
    }
  }
  return std::nullopt;
}

std::optional<std::string> layout_difference(const ParameterLayout& mine,
                                             const ParameterLayout& theirs,
                                             std::string_view owner) {
  return variables_difference(mine.variables(), theirs.variables(), owner);
}

}  // namespace disttf::math
