#include "run/config_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/json/json_text.h"
#include "math/model_spec.h"
#include "math/program_layout.h"
#include "run/setting.h"
#include "text/shortest_number.h"

namespace disttf::roles {

using Json = nlohmann::json;

std::string shown(const Json& value) {
  constexpr std::size_t kMaxShown = 80;
  const auto is_object = [](const Json& part) { return part.is_object(); };
  if (value.is_array() && !value.empty() && std::ranges::all_of(value, is_object)) {
    return "a list of " + std::to_string(value.size()) + " layers";
  }
  const auto is_structured = [](const Json& part) { return part.is_structured(); };
  if (value.is_object() || std::any_of(value.begin(), value.end(), is_structured)) {
    return "a nested value";  // formatting it recurses as deep as the peer that sent it chooses
  }
  std::string text = data::json_text(value, {.only_ascii = true});
  // The text is ASCII, so no character is cut in two.
  if (text.size() > kMaxShown) {
    text = text.substr(0, kMaxShown) + "...";
  }
  return text;
}

double short_number(float value) {
  // Widening the float itself would publish 0.10000000149011612 for 0.1.
  const std::string text = shortest_number(value);
  double parsed = 0;
  std::from_chars(text.data(), text.data() + text.size(), parsed);
  return parsed;
}

namespace {

Json numbers_json(const std::vector<float>& values) {
  Json out = Json::array();
  for (const float value : values) {
    out.push_back(short_number(value));
  }
  return out;
}

// Reads what a file says about examples; each part may be missing.
class FactsReader {
 public:
  explicit FactsReader(const Json& from) : from_(from) {}

  [[nodiscard]] std::vector<std::string> names(const char* key) const {
    std::vector<std::string> out;
    for (const Json& each : array(key)) {
      if (!each.is_string()) {
        refuse(key, each, "a list of names");
      }
      out.push_back(each.get<std::string>());
    }
    return out;
  }
  [[nodiscard]] std::vector<float> numbers(const char* key) const {
    std::vector<float> out;
    for (const Json& each : array(key)) {
      out.push_back(finite(key, each));
    }
    return out;
  }
  [[nodiscard]] float number(const char* key, float otherwise) const {
    const auto found = from_.find(key);
    return found == from_.end() ? otherwise : finite(key, *found);
  }
  [[nodiscard]] std::string text(const char* key) const {
    const auto found = from_.find(key);
    if (found != from_.end() && !found->is_string()) {
      refuse(key, *found, "a name");
    }
    return found == from_.end() ? std::string() : found->get<std::string>();
  }
  [[noreturn]] static void refuse(const char* key, const Json& value, const std::string& allowed) {
    throw std::invalid_argument(std::string("the configuration's examples: ") + key + " is " +
                                shown(value) + ", allowed is " + allowed);
  }

 private:
  [[nodiscard]] Json array(const char* key) const {
    const auto found = from_.find(key);
    if (found == from_.end()) {
      return Json::array();
    }
    // Bounded before it is copied: a checkpoint may come from elsewhere.
    if (!found->is_array() || found->size() > math::kMaxInputs) {
      refuse(key, *found, "a list of at most " + std::to_string(math::kMaxInputs));
    }
    return *found;
  }
  [[nodiscard]] static float finite(const char* key, const Json& value) {
    const double number = value.is_number() ? value.get<double>() : HUGE_VAL;
    // Written as a negation, so that NaN fails, too.
    if (!(std::abs(number) <= std::numeric_limits<float>::max())) {
      refuse(key, value, "a number of 32 bits");
    }
    return static_cast<float>(number);
  }

  const Json& from_;
};

}  // namespace

Json facts_to_json(const ExampleFacts& facts) {
  Json out = Json::object();
  if (!facts.classes.empty()) {
    out["classes"] = facts.classes;
  }
  if (!facts.columns.empty()) {
    out["columns"] = facts.columns;
  }
  if (!facts.label.empty()) {
    out["label"] = facts.label;
  }
  if (!facts.means.empty()) {
    out["means"] = numbers_json(facts.means);
    out["scales"] = numbers_json(facts.scales);
  }
  if (facts.target_mean != 0 || facts.target_scale != 1) {
    out["target_mean"] = short_number(facts.target_mean);
    out["target_scale"] = short_number(facts.target_scale);
  }
  return out;
}

ExampleFacts facts_from_json(const Json& from) {
  if (!from.is_object()) {
    FactsReader::refuse("examples", from, "an object");
  }
  const FactsReader reader(from);
  ExampleFacts facts{.classes = reader.names("classes"),
                     .columns = reader.names("columns"),
                     .label = reader.text("label"),
                     .means = reader.numbers("means"),
                     .scales = reader.numbers("scales"),
                     .target_mean = reader.number("target_mean", 0),
                     .target_scale = reader.number("target_scale", 1)};
  // Readers index means, scales and columns alike.
  if (facts.means.size() != facts.scales.size() ||
      (!facts.columns.empty() && facts.columns.size() != facts.means.size())) {
    FactsReader::refuse("scales", facts.scales.size(), "one for each of the means and columns");
  }
  // Labels are divided by it.
  if (facts.target_scale == 0) {
    FactsReader::refuse("target_scale", 0, "a number other than 0");
  }
  return facts;
}

namespace {

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
