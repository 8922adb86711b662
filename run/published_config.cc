// A RunConfig as the JSON that the chief publishes, and the comparison of two of them. Everything
// goes through the table of settings, so that no setting can be missing in one of the three.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/json/json_text.h"
#include "math/program_layout.h"
#include "run/config_json.h"
#include "run/run_config.h"
#include "run/setting.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::json;

// A layer as in a model file: its type, its name if it has one, its fields.
Json json_of(const math::LayerSpec& layer) {
  Json out = {{"type", layer.type}};
  if (!layer.name.empty()) {
    out["name"] = layer.name;
  }
  for (const auto& [name, value] : layer.fields) {
    if (const auto* const number = std::get_if<double>(&value)) {
      // A whole number is written as one, like the units and sizes in a model file. Above 2^53 a
      // double does not hold every whole number.
      const bool is_whole =
          std::abs(*number) <= static_cast<double>(kMaxCount) && std::trunc(*number) == *number;
      out[name] = is_whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
    } else {
      out[name] = std::get<std::string>(value);
    }
  }
  return out;
}

// Converts each kind of value to JSON.
struct ToJson {
  const RunConfig& run;

  Json operator()(const WholeNumber& value) const { return value.field.in(run); }
  Json operator()(const OptionalNumber& value) const {
    const auto& number = value.field.in(run);
    return number ? Json(*number) : Json();
  }
  Json operator()(const Fraction& value) const { return short_number(value.field.in(run)); }
  Json operator()(const Switch& value) const { return value.field.in(run); }
  Json operator()(const Choice& value) const { return value.name(run); }
  Json operator()(const Model& value) const {
    const math::ModelSpec& model = value.field.in(run);
    if (model.is_program()) {
      return program_to_json(model);
    }
    // A built-in model is published by its name; its hidden units are a setting of their own.
    if (model.layers.empty()) {
      return math::model_name(model.kind);
    }
    Json layers = Json::array();
    for (const math::LayerSpec& layer : model.layers) {
      layers.push_back(json_of(layer));
    }
    return layers;
  }
  Json operator()(const NumberList& value) const { return value.field.in(run); }
  Json operator()(const Compression& value) const { return compress_name(value.field.in(run)); }
  Json operator()(const Word& value) const { return value.field.in(run); }
};

// Reads each kind of value from JSON that a peer sent. Checks only the type; validate() checks the
// bounds.
class FromJson {
 public:
  FromJson(RunConfig& run, std::string_view name, const Json& from)
      : run_(run), name_(name), from_(from) {}

  void operator()(const WholeNumber& value) const { value.field.in(run_) = number(from_); }
  void operator()(const OptionalNumber& value) const {
    value.field.in(run_).reset();
    if (!from_.is_null()) {
      value.field.in(run_) = number(from_);
    }
  }
  void operator()(const Fraction& value) const {
    constexpr double kLargest = std::numeric_limits<float>::max();
    // The largest float's shortest decimal lies a little above it.
    constexpr double kTolerance = 1.0 + double{std::numeric_limits<float>::epsilon()} / 4;
    // NaN is not a JSON number, and an overflow to infinity must not become a setting.
    if (!from_.is_number() || std::abs(from_.get<double>()) > kLargest * kTolerance) {
      refuse("a number of 32 bits");
    }
    value.field.in(run_) = static_cast<float>(std::clamp(from_.get<double>(), -kLargest, kLargest));
  }
  void operator()(const Switch& value) const {
    if (!from_.is_boolean()) {
      refuse("true or false");
    }
    value.field.in(run_) = from_.get<bool>();
  }
  void operator()(const Choice& value) const {
    // A name of a later release is an error: the task would otherwise compute something else.
    if (!value.set(run_, string())) {
      refuse("a name that this version knows");
    }
  }
  void operator()(const Model& value) const {
    math::ModelSpec& model = value.field.in(run_);
    model.layers.clear();
    model.variables.clear();
    model.fingerprint.clear();
    if (from_.is_object()) {
      // Its other members are settings of their own.
      math::ModelSpec program = program_from_json(from_);
      model.variables = std::move(program.variables);
      model.fingerprint = std::move(program.fingerprint);
      return;
    }
    if (from_.is_string()) {
      const auto kind = math::model_from_name(from_.get<std::string>());
      if (!kind) {
        refuse("a name that this version knows");
      }
      model.kind = *kind;
      return;
    }
    if (!from_.is_array() || from_.empty() || from_.size() > math::kMaxLayers) {
      refuse("a name, or a list of 1 to " + std::to_string(math::kMaxLayers) + " layers");
    }
    for (const Json& each : from_) {
      model.layers.push_back(layer(each));
    }
  }
  void operator()(const NumberList& value) const {
    // Bounded before it is copied, since a peer sends it.
    if (!from_.is_array() || from_.size() > value.most_entries) {
      refuse("a list of at most " + std::to_string(value.most_entries) + " layers");
    }
    std::vector<std::size_t> numbers;
    for (const Json& each : from_) {
      numbers.push_back(number(each));
    }
    value.field.in(run_) = std::move(numbers);
  }
  void operator()(const Compression& value) const {
    const std::optional<float> share = compress_from_name(string());
    if (!share) {
      refuse("a name that this version knows");
    }
    value.field.in(run_) = *share;
  }
  void operator()(const Word& value) const {
    std::string word = string();
    if (!is_word(word)) {
      refuse("a word of at most 64 letters, digits and signs");
    }
    value.field.in(run_) = std::move(word);
  }

 private:
  [[noreturn]] void refuse(const std::string& allowed) const {
    refuse_setting(name_, shown(from_), allowed);
  }
  [[nodiscard]] std::uint64_t number(const Json& from) const {
    // Above 2^53 a reader with doubles, such as a script, would see another number.
    if (!from.is_number_unsigned() || from.get<std::uint64_t>() > kMaxCount) {
      refuse_setting(name_, shown(from), "a whole number from 0 to 2^53");
    }
    return from.get<std::uint64_t>();
  }
  [[nodiscard]] static bool is_word(std::string_view text) {
    constexpr std::size_t kMaxWordBytes = 64;
    // Printable ASCII: words are shown in sentences and logged.
    const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
    return text.size() <= kMaxWordBytes && std::ranges::all_of(text, is_plain);
  }
  // Checks only the types of the values: math::validate() knows the types of layers and their
  // fields.
  [[nodiscard]] math::LayerSpec layer(const Json& from) const {
    constexpr std::size_t kMostFields = 16;
    math::LayerSpec out;
    // Bounded before it is read, since a peer sends it.
    const bool has_type = from.is_object() && from.size() <= kMostFields && from.contains("type");
    bool is_good = has_type;
    for (auto each = from.begin(); is_good && each != from.end(); ++each) {
      const bool is_text = each->is_string() && is_word(each->get_ref<const std::string&>());
      is_good = is_word(each.key()) && (is_text || each->is_number());
      if (is_good && (each.key() == "type" || each.key() == "name")) {
        is_good = is_text;
        (each.key() == "type" ? out.type : out.name) = is_text ? each->get<std::string>() : "";
      } else if (is_text) {
        out.fields.emplace(each.key(), each->get<std::string>());
      } else if (is_good) {
        out.fields.emplace(each.key(), each->get<double>());
      }
    }
    if (!is_good) {
      refuse_setting(name_, shown(from), "a layer: a type, and fields that are numbers or words");
    }
    return out;
  }
  [[nodiscard]] std::string string() const {
    if (!from_.is_string()) {
      refuse("a string");
    }
    return from_.get<std::string>();
  }

  RunConfig& run_;
  std::string_view name_;
  const Json& from_;
};

Json json_of(const Setting& setting, const RunConfig& run) {
  return std::visit(ToJson{run}, setting.value);
}

nlohmann::ordered_json published(const RunConfig& config) {
  // In the order of the table, so that equal settings have the same text, and the same
  // configuration_id().
  nlohmann::ordered_json out;
  for (const Setting& setting : settings()) {
    out[std::string(setting.name)] = json_of(setting, config);
  }
  return out;
}

// Returns the name of a setting for a sentence. The data of a program has no flags.
std::string shown_name(const Setting& setting, const RunConfig& run) {
  if (run.model.is_program() && setting.name == "dataset") {
    return "the program's data";
  }
  if (run.model.is_program() && setting.name == "data_checksum") {
    return "the number of rows of the program's data";
  }
  return "--" + std::string(setting.name);
}

// Returns a value for a sentence.
std::string shown_value(const Setting& setting, const RunConfig& run) {
  if (run.model.is_program() && setting.name == "data_checksum") {
    return run.data_checksum.empty() ? "none" : run.data_checksum;
  }
  const auto* const model = std::get_if<Model>(&setting.value);
  const bool is_program = model != nullptr && model->field.in(run).is_program();
  return is_program ? "a " + text_of(setting, run) : shown(json_of(setting, run));
}

// Returns how the variables of two programs differ; nullopt if the setting is no model, or not both
// are programs.
std::optional<std::string> program_difference(const Setting& setting, const RunConfig& mine,
                                              const RunConfig& theirs, std::string_view owner) {
  const auto* const model = std::get_if<Model>(&setting.value);
  if (model == nullptr || !model->field.in(mine).is_program() ||
      !model->field.in(theirs).is_program()) {
    return std::nullopt;
  }
  return math::variables_difference(mine.model.variables, theirs.model.variables, owner);
}

}  // namespace

std::optional<RunConfig> saved_config(std::string_view saved_json) {
  try {
    return run_config_from_json(saved_json);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

std::string to_json(const RunConfig& config) { return data::json_text(published(config)); }

bool concerns_program(std::string_view setting) noexcept {
  constexpr std::array<std::string_view, 11> kOfBuiltIn = {
      "data_checksum", "hidden_units", "height",          "width",         "channels",   "classes",
      "numbers",       "loss",         "label_smoothing", "compute_dtype", "test_shifts"};
  return !setting.starts_with("augment_") &&
         std::ranges::find(kOfBuiltIn, setting) == kOfBuiltIn.end();
}

std::string shown_settings(const RunConfig& config) {
  if (!config.model.is_program()) {
    return to_json(config);
  }
  nlohmann::ordered_json out;
  for (const Setting& setting : settings()) {
    if (std::holds_alternative<Model>(setting.value)) {
      out[std::string(setting.name)] = math::describe(config.model);
    } else if (concerns_program(setting.name)) {
      out[std::string(setting.name)] = json_of(setting, config);
    }
  }
  return data::json_text(out);
}

std::uint64_t configuration_id(std::string_view json) noexcept {
  // FNV-1a: the same on every machine and in every release.
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325;
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t hash = kOffset;
  for (const char each : json) {
    hash = (hash ^ static_cast<unsigned char>(each)) * kPrime;
  }
  // 0 means "unknown" on the wire.
  return hash == 0 ? 1 : hash;
}

std::string to_saved_json(const RunConfig& config) {
  nlohmann::ordered_json out = published(config);
  out["examples"] = facts_to_json(config.examples);
  // Names are bytes from a user, which need not be valid text.
  return data::json_text(out);
}

RunConfig run_config_from_json(std::string_view text) {
  // Twice the depth of any configuration. Parsing a deeper text would take sixty times its size.
  constexpr std::size_t kDeepest = 10;
  if (data::json_depth(text) > kDeepest) {
    throw std::invalid_argument("the published configuration is nested too deep");
  }
  const Json parsed = data::parse_json(text);
  if (!parsed.is_object()) {
    throw std::invalid_argument("the published configuration is not a JSON object");
  }
  RunConfig config;
  for (const Setting& setting : settings()) {
    // Keys that are no settings are ignored, as a later release may publish more.
    const auto found = parsed.find(setting.name);
    // A setting that is newer than the configuration has its default.
    if (found == parsed.end() && setting.may_be_missing) {
      continue;
    }
    if (found == parsed.end()) {
      throw std::invalid_argument("the published configuration lacks --" +
                                  std::string(setting.name));
    }
    std::visit(FromJson(config, setting.name, *found), setting.value);
  }
  if (const auto found = parsed.find("examples"); found != parsed.end()) {
    config.examples = facts_from_json(*found);
  }
  return config;
}

std::optional<std::string> contradiction(const RunConfig& mine,
                                         const std::set<std::string>& explicit_flags,
                                         const RunConfig& published) {
  for (const Setting& setting : settings()) {
    const std::string name(setting.name);
    // A flag that was left out takes the chief's value, so it cannot contradict.
    if (!explicit_flags.contains(name)) {
      continue;
    }
    // Compared as they are published: one comparison serves all kinds of values, and both went
    // through the same rounding.
    const Json own = json_of(setting, mine);
    const Json theirs = json_of(setting, published);
    if (own == theirs) {
      continue;
    }
    if (const auto other = program_difference(setting, mine, published, "the chief's")) {
      return "the programs have different variables: " + *other;
    }
    return "--" + name + ": this task was given " + shown_value(setting, mine) +
           ", the chief published " + shown_value(setting, published) +
           "; leave the flag out or give the chief's value";
  }
  return std::nullopt;
}

std::optional<std::string> difference(const RunConfig& config, std::string_view saved_json) {
  RunConfig saved;
  try {
    saved = run_config_from_json(saved_json);
  } catch (const std::invalid_argument& error) {
    return std::string("the checkpoint's configuration is of another release: ") + error.what();
  }
  for (const Setting& setting : settings()) {
    const Json own = json_of(setting, config);
    const Json other = json_of(setting, saved);
    // Settings that do not change the weights may differ without a warning.
    if (!setting.changes_weights || own == other) {
      continue;
    }
    const auto program = program_difference(setting, config, saved, "the checkpoint's");
    return (program ? *program
                    : shown_name(setting, config) + " is " + shown_value(setting, config) +
                          ", the checkpoint's run had " + shown_value(setting, saved)) +
           ": the weights will not be those of either";
  }
  return std::nullopt;
}

std::string changes(const RunConfig& before, const RunConfig& now) {
  std::string text;
  for (const Setting& setting : settings()) {
    const Json old = json_of(setting, before);
    const Json next = json_of(setting, now);
    if (old == next) {
      continue;
    }
    text += text.empty() ? "" : "; ";
    if (const auto program = program_difference(setting, now, before, "the earlier run's")) {
      text += *program;
    } else {
      text += shown_name(setting, now) + " is " + shown_value(setting, now) + ", it was " +
              shown_value(setting, before);
    }
  }
  return text;
}

bool evaluates_alike(const RunConfig& config, std::string_view saved_json) {
  const std::optional<RunConfig> saved = saved_config(saved_json);
  // Losses with another number of shifts are not comparable.
  return saved && config.test_shifts == saved->test_shifts;
}

bool stops_alike(const RunConfig& config, std::string_view saved_json) {
  const std::optional<RunConfig> saved = saved_config(saved_json);
  // Each of these decides at which evaluation a run stops. With another one the saved end does not
  // count.
  return saved && config.stops_early() && config.eval_every == saved->eval_every &&
         config.test_shifts == saved->test_shifts &&
         config.target_accuracy == saved->target_accuracy && config.patience == saved->patience;
}

std::optional<std::string> other_examples(const RunConfig& config, std::string_view saved_json) {
  const std::optional<RunConfig> saved = saved_config(saved_json);
  // The run goes on here: load_newest() compares the tensors as well.
  if (!saved || saved->model.input == config.model.input) {
    return std::nullopt;
  }
  return "its model takes examples of " + math::to_string(saved->model.input) +
         ", and those of this run are " + math::to_string(config.model.input) +
         "; give the data of its run or another --train_dir (a model from elsewhere gets its shape "
         "from disttf import --input and --input_layout)";
}

}  // namespace disttf::roles
