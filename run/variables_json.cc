#include "run/variables_json.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "math/program_layout.h"
#include "run/json_values.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::json;

constexpr const char* kVariables = "variables";
constexpr const char* kFingerprint = "fingerprint";
constexpr const char* kDecays = "decays";
constexpr const char* kRateFactor = "rate_factor";
constexpr const char* kMomentum = "momentum";

Json variable_to_json(const math::Variable& variable) {
  Json out = Json::array({variable.name, variable.shape});
  Json others = Json::object();
  if (!variable.decays) {
    others[kDecays] = false;
  }
  if (variable.rate_factor != 1) {
    others[kRateFactor] = short_number(variable.rate_factor);
  }
  if (variable.momentum) {
    others[kMomentum] = short_number(*variable.momentum);
  }
  if (!others.empty()) {
    out.push_back(std::move(others));
  }
  return out;
}

[[noreturn]] void refuse_variable(std::size_t index, const char* allowed) {
  throw std::invalid_argument("variable " + std::to_string(index + 1) + " of --model is not " +
                              allowed);
}

float float_from(const Json& json, std::size_t index) {
  const double number = json.is_number() ? json.get<double>() : HUGE_VAL;
  // A larger double has no float, and NaN is no JSON.
  if (std::abs(number) > std::numeric_limits<float>::max()) {
    refuse_variable(index, "one whose rate_factor and momentum are numbers");
  }
  return static_cast<float>(number);
}

std::vector<std::size_t> shape_from(const Json& json, std::size_t index) {
  constexpr const char* kAllowed = "one whose shape is a list of at most 64 whole numbers";
  static_assert(math::kMaxDimensions == 64);
  if (!json.is_array() || json.size() > math::kMaxDimensions) {
    refuse_variable(index, kAllowed);
  }
  std::vector<std::size_t> shape;
  for (const Json& length : json) {
    if (!length.is_number_unsigned()) {
      refuse_variable(index, kAllowed);
    }
    shape.push_back(length.get<std::uint64_t>());
  }
  return shape;
}

// Reads what differs from the default. A word of a later release may change the result, so it is
// refused and not ignored.
void read_others(const Json& json, std::size_t index, math::Variable& to) {
  constexpr const char* kAllowed = "one with decays, rate_factor and momentum alone";
  constexpr std::size_t kMost = 3;
  if (!json.is_object() || json.size() > kMost) {
    refuse_variable(index, kAllowed);
  }
  for (auto each = json.begin(); each != json.end(); ++each) {
    if (each.key() == kDecays && each->is_boolean()) {
      to.decays = each->get<bool>();
    } else if (each.key() == kRateFactor) {
      to.rate_factor = float_from(*each, index);
    } else if (each.key() == kMomentum) {
      to.momentum = float_from(*each, index);
    } else {
      refuse_variable(index, kAllowed);
    }
  }
}

math::Variable variable_from(const Json& json, std::size_t index) {
  const bool has_parts =
      json.is_array() && (json.size() == 2 || json.size() == 3) && json[0].is_string() &&
      json[0].get_ref<const std::string&>().size() <= math::kMaxVariableNameBytes;
  if (!has_parts) {
    refuse_variable(index, "a list of a name of at most 256 characters, a shape, and what differs");
  }
  math::Variable variable{.name = json[0].get<std::string>(), .shape = shape_from(json[1], index)};
  if (json.size() == 3) {
    read_others(json[2], index, variable);
  }
  return variable;
}

}  // namespace

Json program_to_json(const math::ModelSpec& model) {
  Json list = Json::array();
  for (const math::Variable& variable : model.variables) {
    list.push_back(variable_to_json(variable));
  }
  Json out = Json::object();
  out[kVariables] = std::move(list);
  if (!model.fingerprint.empty()) {
    out[kFingerprint] = model.fingerprint;
  }
  return out;
}

std::optional<std::map<std::string, std::string>> fingerprint_from_json(const Json& json) {
  constexpr std::size_t kMostTexts = 32;
  constexpr std::size_t kMostBytes = 256;
  if (!json.is_object() || json.size() > kMostTexts) {
    return std::nullopt;
  }
  std::map<std::string, std::string> out;
  for (auto each = json.begin(); each != json.end(); ++each) {
    // Bounded before it is copied.
    if (each.key().size() > kMostBytes || !each->is_string() ||
        each->get_ref<const std::string&>().size() > kMostBytes) {
      return std::nullopt;
    }
    out.emplace(each.key(), each->get<std::string>());
  }
  return out;
}

math::ModelSpec program_from_json(const Json& json) {
  const auto found = json.is_object() ? json.find(kVariables) : json.end();
  const auto print = json.is_object() ? json.find(kFingerprint) : json.end();
  const std::size_t keys = print == json.end() ? 1 : 2;
  if (found == json.end() || json.size() != keys || !found->is_array() || found->empty() ||
      found->size() > math::kMaxProgramVariables) {
    throw std::invalid_argument("--model: the object is not a list of 1 to " +
                                std::to_string(math::kMaxProgramVariables) + " variables");
  }
  math::ModelSpec model;
  model.variables.reserve(found->size());
  for (const Json& each : *found) {
    model.variables.push_back(variable_from(each, model.variables.size()));
  }
  if (print != json.end()) {
    auto fingerprint = fingerprint_from_json(*print);
    if (!fingerprint) {
      throw std::invalid_argument(
          "the fingerprint of --model is not an object of at most 32 texts of at most 256 bytes");
    }
    model.fingerprint = *std::move(fingerprint);
  }
  return model;
}

}  // namespace disttf::roles
