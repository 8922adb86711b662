#include "tests/main/flag_document.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "main/commands/registry.h"
#include "main/help_text.h"
#include "tests/main/flag_document_path.h"

namespace disttf {
namespace {

constexpr std::string_view kMark = "<!-- flags: ";
constexpr std::string_view kMarkEnd = " -->";

// "Log (standard error)" -> "Log"
std::string title_of(const std::string& group) {
  return group.substr(0, std::min(group.find(" ("), group.find(':')));
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

}  // namespace

std::string read_flag_document() {
  std::ifstream file(kFlagDocumentPath);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

}  // namespace disttf
