#include "tests/main/chart_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <variant>

#include "main/commands/registry.h"
#include "main/flags/group_names.h"
#include "main/help_text.h"
#include "run/setting.h"

namespace disttf {
namespace {

using nlohmann::ordered_json;

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

}  // namespace

std::string read_chart_file(const std::string& name) {
  std::ifstream file(kChartPath + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

std::string with_flag_schemas(const std::string& schema) {
  ordered_json json = ordered_json::parse(schema);
  ordered_json flags = ordered_json::object();
  for_each_flag([&flags](const CLI::Option& option) {
    flags[option.get_lnames().front()] = schema_of(option);
  });
  json["properties"]["flags"]["properties"] = std::move(flags);
  return json.dump(2) + "\n";
}

}  // namespace disttf
