#include "run/program/program_facts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "data/json/json_text.h"
#include "math/optimizer.h"
#include "math/program_layout.h"
#include "math/rate_schedule.h"
#include "net/wire/text.h"
#include "run/config_json.h"
#include "run/program/program_message.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostProgramDepth = 4;
constexpr std::size_t kMostProgramWordBytes = 64;
constexpr std::size_t kMostProgramTextBytes = 256;

// The fields of one JSON object.
class ProgramFields {
 public:
  ProgramFields(const char* message, std::string_view body)
      : message_(message), json_(data::parse_json(body, kMostProgramDepth)) {
    if (!json_.is_object()) {
      constexpr std::size_t kMostShown = 200;
      throw std::invalid_argument(
          std::string(message_) + ": the body is " + net::quoted(body.substr(0, kMostShown)) +
          ", allowed is a JSON object in UTF-8, with null for a number that "
          "is not finite");
    }
  }

  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  [[nodiscard]] std::string text(const char* key, std::size_t most) const {
    const Json* const found = find(key);
    if (found == nullptr) {
      return {};
    }
    if (!found->is_string() || found->get_ref<const std::string&>().size() > most) {
      refuse(key, *found, "a text of at most " + std::to_string(most) + " bytes");
    }
    return found->get<std::string>();
  }
  // Printable ASCII without blanks.
  [[nodiscard]] std::string word(const char* key, std::size_t most) const {
    std::string found = text(key, most);
    if (!std::ranges::all_of(found, [](char c) { return c > ' ' && c <= '~'; })) {
      refuse(key, Json(found), "a word of printable ASCII characters without blanks");
    }
    return found;
  }
  [[nodiscard]] bool flag(const char* key, bool otherwise) const {
    const Json* const found = find(key);
    if (found != nullptr && !found->is_boolean()) {
      refuse(key, *found, "true or false");
    }
    return found == nullptr ? otherwise : found->get<bool>();
  }
  [[nodiscard]] std::optional<double> number(const char* key) const {
    const Json* const found = find(key);
    if (found == nullptr || found->is_null()) {
      return std::nullopt;
    }
    if (!found->is_number()) {
      refuse(key, *found, "a number");
    }
    return found->get<double>();
  }
  [[nodiscard]] std::uint64_t whole(const char* key, std::uint64_t otherwise,
                                    std::uint64_t most) const {
    const Json* const found = find(key);
    if (found == nullptr) {
      return otherwise;
    }
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() == 0 ||
        found->get<std::uint64_t>() > most) {
      refuse(key, *found, "a whole number from 1 to " + std::to_string(most));
    }
    return found->get<std::uint64_t>();
  }
  [[noreturn]] void refuse(const char* key, const Json& value, const std::string& allowed) const {
    throw std::invalid_argument(std::string(message_) + ": " + key + " is " +
                                net::quoted(data::json_text(value)) + ", allowed is " + allowed);
  }
  [[nodiscard]] const Json& json() const noexcept { return json_; }

 private:
  const char* message_;
  Json json_;
};

std::vector<std::size_t> program_shape_of(const ProgramFields& fields) {
  const Json* const found = fields.find("shape");
  if (found == nullptr || !found->is_array() || found->size() > math::kMaxDimensions) {
    fields.refuse("shape", found == nullptr ? Json() : *found,
                  "a list of at most " + std::to_string(math::kMaxDimensions) + " whole numbers");
  }
  std::vector<std::size_t> shape;
  std::size_t size = 1;
  for (const Json& each : *found) {
    const std::uint64_t length = each.is_number_unsigned() ? each.get<std::uint64_t>() : 0;
    // Divided, since a product could overflow.
    if (length == 0 || length > math::kMaxProgramFloats / size) {
      fields.refuse("shape", *found,
                    "whole numbers above 0, whose product is at most " +
                        std::to_string(math::kMaxProgramFloats));
    }
    size *= length;
    shape.push_back(length);
  }
  return shape;
}

}  // namespace

ProgramHello read_hello(std::string_view body) {
  const ProgramFields fields("HELLO", body);
  if (fields.whole("protocol", 0, std::numeric_limits<std::uint32_t>::max()) != kProgramProtocol) {
    const Json* const found = fields.find("protocol");
    fields.refuse("protocol", found == nullptr ? Json() : *found,
                  std::to_string(kProgramProtocol) + ", the version that this disttf speaks");
  }
  ProgramHello hello{.client = fields.text("client", kMostProgramTextBytes),
                     .data = fields.word("data", kMostProgramWordBytes),
                     .rows = static_cast<std::uint32_t>(
                         fields.whole("rows", 0, std::numeric_limits<std::uint32_t>::max())),
                     .evaluates = fields.flag("evaluates", false),
                     .fingerprint = {}};
  if (const Json* const found = fields.find("fingerprint"); found != nullptr) {
    auto fingerprint = fingerprint_from_json(*found);
    if (!fingerprint) {
      fields.refuse("fingerprint", *found, "an object of at most 32 texts of at most 256 bytes");
    }
    hello.fingerprint = *std::move(fingerprint);
  }
  return hello;
}

std::string rows_text(std::uint32_t rows) { return rows == 0 ? "none" : std::to_string(rows); }

math::Variable read_variable(std::string_view body) {
  const ProgramFields fields("VARIABLE", body);
  math::Variable variable;
  variable.name = fields.word("name", math::kMaxVariableNameBytes);
  if (variable.name.empty()) {
    fields.refuse("name", Json(""), "a word of 1 to 256 characters");
  }
  variable.shape = program_shape_of(fields);
  variable.decays = fields.flag("decays", true);
  if (const auto momentum = fields.number("momentum")) {
    if (!(*momentum >= 0 && *momentum < 1)) {
      fields.refuse("momentum", Json(*momentum), "0 or more, and below 1");
    }
    variable.momentum = static_cast<float>(*momentum);
    variable.decays = false;
  }
  if (const auto factor = fields.number("rate_factor")) {
    if (!(*factor >= 0 && *factor <= double{math::kMaxRateFactor})) {
      fields.refuse("rate_factor", Json(*factor), "from 0 to 1000");
    }
    variable.rate_factor = static_cast<float>(*factor);
  }
  return variable;
}

ProgramNumbers read_numbers(std::string_view body) {
  ProgramNumbers numbers;
  if (body.empty()) {
    return numbers;
  }
  const ProgramFields fields("the numbers", body);
  if (fields.json().size() > kMostProgramNumbers) {
    throw std::invalid_argument("the numbers: there are " + std::to_string(fields.json().size()) +
                                ", allowed are at most " + std::to_string(kMostProgramNumbers));
  }
  for (const auto& [key, value] : fields.json().items()) {
    if (key.empty() || key.size() > kMostProgramWordBytes ||
        !(value.is_number() || value.is_null())) {
      fields.refuse(net::quoted(key).c_str(), value, "a number, under a name of 1 to 64 bytes");
    }
    numbers.emplace_back(
        key, value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return numbers;
}

void check_evaluation(const ProgramNumbers& numbers) {
  // A mean of floats may lie a little above 1.
  constexpr double kMostAccuracy = 1 + 1e-6;
  for (const auto& [name, value] : numbers) {
    if (name == "accuracy" && (value < 0 || value > kMostAccuracy)) {
      throw std::invalid_argument("EVALUATION: accuracy is " + data::json_text(Json(value)) +
                                  ", allowed is from 0 to 1");
    }
  }
}

std::string welcome_text(const RunConfig& config, const Task& task, std::size_t size) {
  const Json json = {{"protocol", kProgramProtocol},
                     {"job", std::string(net::job_name(task.self.job))},
                     {"task_index", task.self.index},
                     {"is_chief", task.cluster.is_chief(task.self)},
                     {"rank", task.cluster.rank_of(task.self)},
                     {"trainers", config.trainers},
                     {"batch_size", config.batch_size},
                     {"slots", config.slots()},
                     {"train_steps", config.train_steps},
                     {"seed", config.seed},
                     {"size", size},
                     {"elastic", config.elastic()},
                     {"sync", config.sync_replicas},
                     {"optimizer", std::string(math::optimizer_name(config.optimizer.kind))},
                     {"learning_rate", short_number(config.optimizer.learning_rate)},
                     {"learning_rate_decay", std::string(math::rate_decay_name(config.rate_decay))},
                     {"warmup_steps", config.warmup_steps},
                     {"weight_decay", short_number(config.optimizer.weight_decay)},
                     {"clip_norm", short_number(config.clip_norm)}};
  return data::json_text(json);
}

math::ParameterLayout layout_of_program(const std::vector<math::Variable>& variables) {
  if (variables.empty()) {
    throw std::invalid_argument("no variables, allowed are 1 to " +
                                std::to_string(math::kMaxProgramVariables));
  }
  math::ModelSpec spec;
  spec.variables = variables;
  math::validate(spec);
  return math::layout_of(spec);
}

std::string fingerprint_difference(const std::map<std::string, std::string>& mine,
                                   const std::map<std::string, std::string>& theirs) {
  for (const auto& [key, value] : mine) {
    const auto found = theirs.find(key);
    const std::string other = found == theirs.end() ? "nothing" : found->second;
    if (other != value) {
      return net::one_line(key + " is " + value + ", it is " + other + " there");
    }
  }
  for (const auto& [key, value] : theirs) {
    if (!mine.contains(key)) {
      return net::one_line(key + " is nothing, it is " + value + " there");
    }
  }
  return {};
}

}  // namespace disttf::roles
