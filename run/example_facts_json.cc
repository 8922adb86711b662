#include "run/example_facts_json.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "math/model_spec.h"
#include "run/json_values.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::json;

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

}  // namespace disttf::roles
