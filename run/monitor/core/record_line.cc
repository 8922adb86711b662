#include "run/monitor/core/record_line.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/monitor/core/record.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;

enum class FieldType : std::uint8_t { kTime, kNumber, kCount, kText, kObject, kList };

struct RecordField {
  std::string_view kind;  // empty: all kinds
  const char* name;
  FieldType type;
  bool is_needed = false;
};

constexpr std::array kFields = {
    RecordField{"", "time", FieldType::kTime, true},
    RecordField{"run", "step", FieldType::kCount, true},
    RecordField{"run", "train_steps", FieldType::kCount},
    RecordField{"run", "dataset", FieldType::kText},
    RecordField{"run", "model", FieldType::kText},
    RecordField{"run", "settings", FieldType::kObject},
    RecordField{"step", "step", FieldType::kCount, true},
    RecordField{"step", "loss", FieldType::kNumber},
    RecordField{"step", "learning_rate", FieldType::kNumber},
    RecordField{"step", "images_per_second", FieldType::kNumber},
    RecordField{"step", "numbers", FieldType::kObject},
    RecordField{"evaluation", "step", FieldType::kCount, true},
    RecordField{"evaluation", "validation", FieldType::kObject},
    RecordField{"evaluation", "test", FieldType::kObject},
    RecordField{"task", "task", FieldType::kText, true},
    RecordField{"metrics", "task", FieldType::kText, true},
    RecordField{"metrics", "stages", FieldType::kObject},
    RecordField{"frontier", "stages", FieldType::kList},
    RecordField{"checkpoint", "step", FieldType::kCount, true},
    RecordField{"event", "text", FieldType::kText},
    RecordField{"result", "line", FieldType::kText},
};
// In a line of --metrics_file of a user's program.
constexpr const char* kProgramLoss = "validation_loss";
constexpr std::array<const char*, 2> kSets = {"validation", "test"};
constexpr std::array<const char*, 3> kMeasures = {"loss", "accuracy", "absolute_error"};

struct TypeOfField {
  const char* described;
  bool (*is_of)(const OrderedJson& value);
};
// By FieldType.
constexpr std::array<TypeOfField, 6> kTypesOfFields = {{
    {"a number", [](const OrderedJson& value) { return value.is_number(); }},
    {"a number, or null",
     [](const OrderedJson& value) { return value.is_number() || value.is_null(); }},
    {"a whole number of at least 0",
     [](const OrderedJson& value) { return value.is_number_unsigned(); }},
    {"text", [](const OrderedJson& value) { return value.is_string(); }},
    {"an object", [](const OrderedJson& value) { return value.is_object(); }},
    {"a list", [](const OrderedJson& value) { return value.is_array(); }},
}};

const TypeOfField& type_row(FieldType type) {
  return kTypesOfFields[static_cast<std::size_t>(type)];
}

std::string wrong_field(const std::string& name, const OrderedJson& value, FieldType type) {
  return name + " is " + net::quoted(data::json_text(value)) + "; expected " +
         type_row(type).described;
}

// Empty if the field is right, else a sentence. `name`: of the field in the sentence.
std::string check_field(const OrderedJson& in, const char* key, FieldType type, bool is_needed,
                        const std::string& name) {
  const auto found = in.find(key);
  if (found == in.end()) {
    return is_needed ? name + " is missing; expected " + type_row(type).described : std::string();
  }
  return type_row(type).is_of(*found) ? std::string() : wrong_field(name, *found, type);
}

std::string check_measures(const OrderedJson& record) {
  for (const char* const set : kSets) {
    const auto measures = record.find(set);
    for (const char* const key : kMeasures) {
      if (measures != record.end()) {
        std::string why =
            check_field(*measures, key, FieldType::kNumber, false, std::string(set) + "." + key);
        if (!why.empty()) {
          return why;
        }
      }
    }
  }
  return {};
}

std::string check_fields(const OrderedJson& record, const std::string& kind) {
  for (const RecordField& field : kFields) {
    if (field.kind.empty() || field.kind == kind) {
      std::string why = check_field(record, field.name, field.type, field.is_needed, field.name);
      if (!why.empty()) {
        return why;
      }
    }
  }
  return kind == "evaluation" ? check_measures(record) : std::string();
}

// {"step":500,"seconds":1.9,"validation_cross_entropy":0.19,"test_accuracy":0.94,...}
RecordLine from_metrics(const OrderedJson& line) {
  struct Renamed {
    const char* key;
    const char* set;
    const char* measure;
  };
  constexpr std::array<Renamed, 7> kRenamed = {
      {{"validation_cross_entropy", "validation", "loss"},
       {kProgramLoss, "validation", "loss"},
       {"validation_accuracy", "validation", "accuracy"},
       {"validation_mean_absolute_error", "validation", "absolute_error"},
       {"test_cross_entropy", "test", "loss"},
       {"test_accuracy", "test", "accuracy"},
       {"test_mean_absolute_error", "test", "absolute_error"}}};
  std::string why = check_field(line, "step", FieldType::kCount, true, "step");
  why = why.empty() ? check_field(line, "seconds", FieldType::kTime, true, "seconds") : why;
  for (const Renamed& each : kRenamed) {
    why = why.empty() ? check_field(line, each.key, FieldType::kNumber, false, each.key) : why;
  }
  if (!why.empty()) {
    return {.record = {}, .why = std::move(why)};
  }
  OrderedJson record = {{"kind", "evaluation"},
                        {"time", line.at("seconds")},
                        {"source", kMetricsFile},
                        {"step", line.at("step")}};
  for (const Renamed& each : kRenamed) {
    if (const auto found = line.find(each.key); found != line.end()) {
      record[each.set][each.measure] = *found;
    }
  }
  // A user's program chooses the names of its other numbers.
  constexpr std::string_view kPrefix = "validation_";
  for (const auto& [key, value] : line.items()) {
    if (line.contains(kProgramLoss) && key.starts_with(kPrefix) &&
        std::ranges::find(kRenamed, std::string_view(key), &Renamed::key) == kRenamed.end()) {
      record["validation"]["numbers"][key.substr(kPrefix.size())] = value;
    }
  }
  return {.record = std::move(record), .why = {}};
}

}  // namespace

RecordLine read_record_line(std::string_view line) {
  OrderedJson record = data::parse_ordered_json(line, kMostRecordDepth);
  if (!record.is_object()) {
    return {.record = {}, .why = net::quoted(line) + " is not a JSON object"};
  }
  const auto kind = record.find("kind");
  // Lines of --metrics_file have no kind: they are read as evaluations.
  if (kind == record.end() && record.contains("seconds")) {
    return from_metrics(record);
  }
  if (kind == record.end() || !kind->is_string()) {
    return {.record = {},
            .why = kind == record.end()
                       ? "kind is missing, and so is seconds; expected a record, or a line of "
                         "--metrics_file"
                       : wrong_field("kind", *kind, FieldType::kText)};
  }
  const std::string name = *kind;
  constexpr std::array<std::string_view, 3> kWithoutFields = {"confusion", "picture", "state"};
  bool is_known = std::ranges::find(kWithoutFields, name) != kWithoutFields.end();
  for (const RecordField& field : kFields) {
    is_known = is_known || (!field.kind.empty() && field.kind == name);
  }
  // A kind of a later release is skipped, not rejected.
  if (!is_known) {
    return {};
  }
  // Readers of records rely on these types; other fields may have any.
  if (std::string why = check_fields(record, name); !why.empty()) {
    return {.record = {}, .why = std::move(why)};
  }
  return {.record = std::move(record), .why = {}};
}

}  // namespace disttf::roles
