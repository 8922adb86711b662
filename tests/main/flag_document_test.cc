#include "tests/main/flag_document.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <variant>

#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "main/help_text.h"
#include "main/version.h"
#include "run/setting.h"

namespace disttf {
namespace {

constexpr std::string_view kMark = "<!-- flags: ";
constexpr std::string_view kMarkEnd = " -->";

// "Log (standard error)" -> "Log"
std::string title_of(const std::string& group) {
  return group.substr(0, std::min(group.find(" ("), group.find(':')));
}

// "`linear`: [falls](x.md) to 0; `none`: it stays [no bound]" -> "...; default: no bound"
std::string document_text(std::string_view description) {
  if (!description.ends_with(']')) {
    return std::string(description);
  }
  const std::size_t bracket = description.rfind(" [");
  return std::string(description.substr(0, bracket)) + "; default: " +
         std::string(description.substr(bracket + 2, description.size() - bracket - 3));
}

// "| `--ps`, `-s` | `1` | parameter servers to start |"
std::string row_of(const CLI::Option& option) {
  std::string names;
  const auto add_name = [&names](const std::string& name) {
    names += (names.empty() ? "`" : ", `") + name + "`";
  };
  for (const std::string& name : option.get_lnames()) {
    add_name("--" + name);
  }
  for (const std::string& name : option.get_snames()) {
    add_name("-" + name);
  }
  std::string text = document_text(option.get_description());
  std::string value = option.get_default_str();
  value = value.empty() ? value : "`" + value + "`";
  if (option.get_expected_max() == 0) {  // a switch
    value = "false";
    for (const char* const other : {"true", "false"}) {
      const std::string told = std::string("; default: ") + other;
      if (text.ends_with(told)) {
        value = other;
        text.erase(text.size() - told.size());
      }
    }
  }
  return "| " + names + " | " + value + (value.empty() ? "| " : " | ") + text + " |\n";
}

// Returns the table for a `mark` such as "status logs, Managing a launch".
std::string table_of(const std::string& mark) {
  const std::size_t comma = mark.find(", ");
  if (comma == std::string::npos) {
    throw std::invalid_argument("\"" + mark + "\" is not COMMAND, GROUP");
  }
  std::istringstream names(mark.substr(0, comma));
  const std::string group = mark.substr(comma + 2);
  std::string rows;
  std::set<std::string> seen;
  for (std::string name; names >> name;) {
    const CommandRow* const row = find_command(name);
    if (row == nullptr) {
      throw std::invalid_argument("\"" + name + "\" is no command");
    }
    const CommandApp app(*row);
    for (const CLI::Option* option : app.get_options()) {
      if (title_of(option->get_group()) == group && !option->get_lnames().empty() &&
          seen.insert(option->get_lnames().front()).second) {
        rows += row_of(*option);
      }
    }
  }
  if (rows.empty()) {
    throw std::invalid_argument("no flag stands in \"" + mark + "\"");
  }
  return "| flag | default | |\n|---|---|---|\n" + rows;
}

// Returns the document with every table regenerated. Throws std::invalid_argument if a mark names
// an unknown command, or a group without flags.
std::string with_tables(const std::string& document) {
  std::istringstream lines(document);
  std::string out;
  bool is_in_table = false;  // after a mark
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kMark) && line.ends_with(kMarkEnd)) {
      out += line + "\n\n" +
             table_of(line.substr(kMark.size(), line.size() - kMark.size() - kMarkEnd.size()));
      is_in_table = true;
    } else if (!is_in_table || !(line.empty() || line.starts_with('|'))) {
      out += (is_in_table ? "\n" : "") + line + "\n";
      is_in_table = false;
    }
  }
  return out;
}

// `make flags-document` runs this test with DISTTF_REWRITE set, which rewrites the document.
TEST(FlagDocument, IsWhatTheFlagsSay) {
  const std::string document = read_flag_document();
  const std::string made = with_tables(document);
  if (std::getenv("DISTTF_REWRITE") != nullptr) {
    std::ofstream(kFlagDocumentPath) << made;
    return;
  }
  EXPECT_EQ(document, made) << "make flags-document regenerates the tables";
}

TEST(FlagDocument, KeepsTheProseAroundItsTables) {
  const std::string made =
      with_tables("before\n\n<!-- flags: plus, Log -->\n\n| old |\n| rows |\n\nafter | it\n");
  EXPECT_THAT(made, testing::StartsWith("before\n\n<!-- flags: plus, Log -->\n\n"
                                        "| flag | default | |\n|---|---|---|\n| `--log_level`"));
  EXPECT_THAT(made, testing::EndsWith(" |\n\nafter | it\n"));
  EXPECT_EQ(with_tables(made), made);
  EXPECT_THROW(static_cast<void>(with_tables("<!-- flags: dance, Log -->\n")),
               std::invalid_argument);
  EXPECT_THROW(static_cast<void>(with_tables("<!-- flags: plus, Training -->\n")),
               std::invalid_argument);
}

// The flags in deploy/helm/disttf, the Helm chart: lines of values.yaml between two marks, and a
// part of values.schema.json, generated from the flags that `render` passes to tasks.

using nlohmann::ordered_json;

constexpr const char* kChartPath = DISTTF_SOURCE_DIR "/deploy/helm/disttf/";
const std::string kFirstMark = "  # ---- flags ----\n";
const std::string kLastMark = "  # ---- end of flags ----\n";

void for_each_flag(const std::function<void(const CLI::Option&)>& act) {
  const CommandApp app(*find_command("render"));
  for (const CLI::Option* option : app.get_options()) {
    const bool is_handed_on = option != app.get_config_ptr() && option != app.get_help_ptr() &&
                              option->get_group() != kRenderGroup && !option->get_lnames().empty();
    if (is_handed_on) {
      act(*option);
    }
  }
}

bool is_switch(const CLI::Option& option) { return option.get_expected_max() == 0; }

// Returns the task's default for the flag; "" if there is no single default.
std::string default_of(const CLI::Option& option) {
  if (!is_switch(option)) {
    const std::string value = option.get_default_str();
    return value.empty() ? "\"\"" : value;
  }
  return option.get_description().ends_with("[true]") ? "true" : "false";
}

// Helm's --set makes integers and booleans of values that look like them, and text of all others,
// also of 0.1.
ordered_json type_of(std::initializer_list<const char*> types) {
  ordered_json json;
  json["type"] = types;
  return json;
}

struct SchemaOf {
  ordered_json operator()(const roles::WholeNumber& value) const {
    ordered_json json = whole(value.most);
    json["minimum"] = value.least;
    return json;
  }
  ordered_json operator()(const roles::OptionalNumber& value) const {
    ordered_json json = whole(value.most);
    json["minimum"] = value.least;
    return json;
  }
  ordered_json operator()(const roles::Fraction& /*value*/) const {
    ordered_json json = type_of({"number", "string"});
    json["pattern"] = "^[0-9.]+([eE][-+]?[0-9]+)?$";
    return json;
  }
  ordered_json operator()(const roles::Switch& /*value*/) const { return type_of({"boolean"}); }
  ordered_json operator()(const roles::Choice& value) const {
    ordered_json json;
    json["enum"] = ordered_json::array();
    for (const std::string_view name : value.names()) {
      json["enum"].push_back(name);
    }
    if (!value.automatic().empty()) {
      json["enum"].push_back(value.automatic());
    }
    return json;
  }
  ordered_json operator()(const roles::Model& /*value*/) const { return type_of({"string"}); }
  ordered_json operator()(const roles::NumberList& /*value*/) const {
    return type_of({"integer", "string", "array"});
  }
  ordered_json operator()(const roles::Compression& /*value*/) const { return type_of({"string"}); }
  ordered_json operator()(const roles::Word& /*value*/) const { return type_of({"string"}); }

 private:
  // Leaves out a bound that only protects the machine.
  static ordered_json whole(std::uint64_t most) {
    ordered_json json = type_of({"integer"});
    if (most != roles::kMaxCount) {
      json["maximum"] = most;
    }
    return json;
  }
};

ordered_json schema_of(const CLI::Option& option) {
  const auto settings = roles::settings();
  const auto setting = std::ranges::find_if(settings, [&option](const roles::Setting& each) {
    return each.is_flag() && each.name == option.get_lnames().front();
  });
  ordered_json json = setting != settings.end() ? std::visit(SchemaOf(), setting->value)
                      : is_switch(option)       ? type_of({"boolean"})
                                                : type_of({"integer", "number", "string", "array"});
  json["description"] = plain_text(option.get_description());
  return json;
}

// Returns a file of the chart from the source tree.
std::string read_chart_file(const std::string& name) {
  std::ifstream file(kChartPath + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns values.yaml with the lines between the marks regenerated. Throws std::invalid_argument if
// the marks are missing.
std::string with_flag_lines(const std::string& values) {
  const std::size_t first = values.find(kFirstMark);
  const std::size_t last = values.find(kLastMark);
  if (first == std::string::npos || last == std::string::npos || last < first) {
    throw std::invalid_argument("values.yaml lacks one of the marks of the flags");
  }
  std::string lines;
  for_each_flag([&lines](const CLI::Option& option) {
    lines += "  # " + option.get_lnames().front() + ": " + default_of(option) + "    # " +
             plain_text(option.get_description()) + "\n";
  });
  return values.substr(0, first) + kFirstMark + lines + values.substr(last);
}

// Returns values.schema.json with `properties.flags.properties` regenerated.
std::string with_flag_schemas(const std::string& schema) {
  ordered_json json = ordered_json::parse(schema);
  ordered_json flags = ordered_json::object();
  for_each_flag([&flags](const CLI::Option& option) {
    flags[option.get_lnames().front()] = schema_of(option);
  });
  json["properties"]["flags"]["properties"] = std::move(flags);
  return json.dump(2) + "\n";
}

// deploy/helm/disttf: the chart has the flags of the tasks, and the version of disttf.

// `make flags-document` runs this test with DISTTF_REWRITE set, which rewrites the files.
TEST(Chart, HasTheFlags) {
  const std::string values = read_chart_file("values.yaml");
  const std::string schema = read_chart_file("values.schema.json");
  if (std::getenv("DISTTF_REWRITE") != nullptr) {
    std::ofstream(std::string(kChartPath) + "values.yaml") << with_flag_lines(values);
    std::ofstream(std::string(kChartPath) + "values.schema.json") << with_flag_schemas(schema);
    return;
  }
  EXPECT_EQ(values, with_flag_lines(values)) << "make flags-document regenerates them";
  EXPECT_EQ(schema, with_flag_schemas(schema)) << "make flags-document regenerates them";
}

TEST(Chart, WantsTheMarksOfItsFlags) {
  EXPECT_THROW(static_cast<void>(with_flag_lines("flags: {}\n")), std::invalid_argument);
}

// disttf reports 0.1.0 for a release, and 0.1.0+g1a2b3c4 between releases.
TEST(Chart, HasTheVersionOfTheProduct) {
  const std::string version = std::string(kVersion).substr(0, std::string(kVersion).find('+'));
  const std::string chart = read_chart_file("Chart.yaml");
  EXPECT_THAT(chart, testing::HasSubstr("\nversion: " + version + "\n"));
  EXPECT_THAT(chart, testing::HasSubstr("\nappVersion: \"" + version + "\"\n"));
}

}  // namespace
}  // namespace disttf
