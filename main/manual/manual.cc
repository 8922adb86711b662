#include "main/manual/manual.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <sstream>

#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "main/help_text.h"

namespace disttf {
namespace {

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string page_name(const std::string& command) { return "disttf-" + command; }

std::string reference(const std::string& command) {
  const std::string page = command.empty() ? "disttf" : page_name(command);
  return "\\fB" + manual_text(page) + "\\fR(1)";
}

std::string head(std::string_view page, std::string_view version, std::string_view date,
                 std::string_view about) {
  return ".TH " + upper(manual_text(page)) + " 1 \"" + std::string(date) + "\" \"disttf " +
         manual_text(version) + "\" \"disttf manual\"\n.SH NAME\n" + manual_text(page) + " \\- " +
         manual_text(about) + "\n";
}

// The offset of the allowed values in "NAME:{text,json}" and "N:1..1000", after the colon; npos in
// "HOST:PORT,...", which only shows the form of a value.
std::size_t begin_of_allowed(std::string_view type) {
  for (std::size_t at = type.find(':'); at != std::string_view::npos; at = type.find(':', at + 1)) {
    // A port or a path after the colon begins with neither, so HOST:PORT is left whole.
    if (at + 1 < type.size() && (type[at + 1] == '{' || std::isdigit(type[at + 1]) != 0)) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// "--config FILE" -> a tag with the flag's names in bold and its value's name in italics.
std::string tag_of(const CLI::Option& option) {
  std::string tag;
  const auto add = [&tag](const std::string& name) {
    tag += (tag.empty() ? "\\fB" : ", \\fB") + manual_text(name) + "\\fR";
  };
  if (option.get_positional()) {
    return "\\fI" + manual_text(option.get_name()) + "\\fR";
  }
  for (const std::string& name : option.get_snames()) {
    add("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    add("--" + name);
  }
  const std::string type = option.get_type_name();
  if (option.get_expected_max() > 0 && !type.empty()) {
    const std::size_t allowed = begin_of_allowed(type);
    const std::size_t end = allowed == std::string::npos ? type.size() : allowed - 1;
    tag += " \\fI" + manual_text(type.substr(0, end)) + "\\fR";
  }
  return tag;
}

// The values allowed by "NAME:{text,json}" or "N:1..1000", as a sentence; empty if there are none.
std::string allowed_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = begin_of_allowed(type);
  if (option.get_positional() || begin == std::string::npos) {
    return {};
  }
  const std::string allowed = type.substr(begin);
  if (!allowed.starts_with('{')) {
    const std::size_t dots = allowed.find("..");
    return dots == std::string::npos
               ? std::string()
               : "From " + allowed.substr(0, dots) + " to " + allowed.substr(dots + 2) + ".";
  }
  std::string names;
  for (const char c : allowed.substr(1, allowed.size() - 2)) {
    names += c == ',' ? ", " : std::string(1, c);
  }
  return "One of " + names + ".";
}

std::string entry_of(const CLI::Option& option) {
  const std::string about = plain_text(option.get_description());
  std::string text =
      ".TP\n" + tag_of(option) + "\n" + manual_text(about.empty() ? "" : about + ".");
  if (const std::string allowed = allowed_of(option); !allowed.empty()) {
    text += "\n" + manual_text(allowed);
  }
  if (!option.get_default_str().empty()) {
    text += "\n" + manual_text("Default: " + option.get_default_str() + ".");
  }
  return text + "\n";
}

// Positional words first, then the groups of flags in the order of --help.
std::string options_of(const CLI::App& app) {
  std::string words;
  std::string flags;
  std::string group;
  const auto is_shown = [](const CLI::Option* option) {
    return option->get_positional() || option->get_group() != kHiddenGroup;
  };
  for (const CLI::Option* option : app.get_options(is_shown)) {
    if (option->get_positional()) {
      words += entry_of(*option);
      continue;
    }
    // "Options" is CLI11's name for flags without a group, such as --help: they need no heading.
    if (option->get_group() != group && option->get_group() != "Options") {
      group = option->get_group();
      flags += ".SS " + manual_text(group) + "\n";
    }
    flags += entry_of(*option);
  }
  return ".SH OPTIONS\n" + words + flags;
}

// Keeps the line breaks of the text.
std::string verbatim(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string out = ".nf\n";
  for (std::string line; std::getline(lines, line);) {
    out += line.empty() ? ".sp\n" : manual_text(line) + "\n";
  }
  return out + ".fi\n";
}

std::string footer_of(const CLI::App& app) {
  const std::string footer = app.get_footer();
  const std::size_t begin = footer.find_first_not_of('\n');
  return begin == std::string::npos ? std::string() : ".PP\n" + verbatim(footer.substr(begin));
}

std::string exit_section() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitText& each : exit_texts()) {
    text += ".TP\n\\fB" + std::to_string(each.code) + "\\fR\n" + manual_text(each.what) + "\n";
  }
  return text;
}

std::string variable_entry(const VariableText& variable) {
  return ".TP\n\\fB" + manual_text(variable.names) + "\\fR\n" + manual_text(variable.what) + "\n";
}

std::string environment_section(std::span<const Reads> reads) {
  std::string text = ".SH ENVIRONMENT\n";
  if (reads.empty()) {
    return text + "No variable is read.\n";
  }
  for (const VariableText& each : variable_texts()) {
    if (std::ranges::find(reads, each.read_as) != reads.end()) {
      text += variable_entry(each);
    }
  }
  return text;
}

std::string files_section(std::span<const FileText> files) {
  std::string text = ".SH FILES\n";
  for (const FileText& each : files) {
    text += ".TP\n\\fI" + manual_text(each.name) + "\\fR\n" + manual_text(each.what) + "\n";
  }
  return files.empty() ? text + "None but those that its flags name.\n" : text;
}

std::string examples_section(std::span<const Example> examples) {
  std::string text = ".SH EXAMPLES\n";
  for (const Example& each : examples) {
    text += ".TP\n\\fB" + manual_text(each.line) + "\\fR\n" + manual_text(each.what) + "\n";
  }
  return text;
}

std::string command_page(const CommandRow& row, std::string_view version, std::string_view date) {
  // The page comes from the same app as --help, so the two cannot differ. No flag is parsed:
  // get_default_str() gives the defaults.
  const CommandApp app(row);
  std::string page = head(page_name(row.name), version, date, row.description);
  page += std::string(".SH SYNOPSIS\n\\fBdisttf ") + row.name + "\\fR " +
          (*row.words == '\0' ? "" : "\\fI" + manual_text(row.words) + "\\fR ") +
          "[\\fIFLAGS\\fR]\n.SH DESCRIPTION\n" + manual_text(row.about) + "\n" + footer_of(app);
  page += options_of(app) + exit_section() + environment_section(row.reads) +
          files_section(row.files) + examples_section(row.examples) + ".SH SEE ALSO\n" +
          reference("");
  for (const char* const name : row.see_also) {
    page += ",\n" + reference(name);
  }
  return page + "\n";
}

std::string main_page(std::string_view version, std::string_view date) {
  std::string page =
      head("disttf", version, date, "train a model with parameter servers") +
      ".SH SYNOPSIS\n\\fBdisttf\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR]\n.br\n\\fBdisttf\\fR "
      "[\\fIFLAGS\\fR]\n.br\n\\fBdisttf \\-\\-version\\fR | \\fB\\-\\-help\\fR\n.SH DESCRIPTION\n";
  page += manual_text(
              "One static file for every task of a cluster: parameter servers, workers and a "
              "chief. It also starts and monitors them and serves trained models. Without a "
              "command the role comes from --job_name or TF_CONFIG, as with train.") +
          "\n.PP\n" +
          manual_text(
              "A value follows its flag as --ps 2 or --ps=2; hyphens may stand for underscores; "
              "booleans are true or false, and the bare flag means true. --config FILE.toml reads "
              "the same names; the command line wins. With a wrong flag disttf exits with code 2 "
              "and a message.") +
          "\n.SS Commands\n";
  std::string see_also;
  std::vector<Example> examples;
  std::vector<FileText> files;
  for (const CommandRow& row : commands()) {
    page += ".TP\n\\fB" + manual_text(row.name) + "\\fR\n" + manual_text(row.description) + ".\n";
    see_also += (see_also.empty() ? "" : ",\n") + reference(row.name);
    examples.push_back(row.examples.front());
    // Several commands use the same file. The page lists it once.
    std::ranges::copy_if(row.files, std::back_inserter(files), [&files](const FileText& each) {
      return std::ranges::find(files, std::string_view(each.name), &FileText::name) == files.end();
    });
  }
  page +=
      ".SH OPTIONS\nEach command's own page has its flags.\n.TP\n\\fB\\-\\-version\\fR\n"
      "Print the version and exit; with \\fB\\-\\-verbose\\fR also the libraries that are in the "
      "file.\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\n"
      "Print the commands, or behind one of them its flags, and exit.\n" +
      exit_section() + ".SH ENVIRONMENT\n";
  for (const VariableText& each : variable_texts()) {
    page += variable_entry(each);
  }
  return page + files_section(files) + examples_section(examples) + ".SH SEE ALSO\n" + see_also +
         "\n";
}

}  // namespace

std::string manual_text(std::string_view text) {
  std::string out;
  bool begins_line = true;
  for (const char c : text) {
    // At the beginning of a line, roff takes these two for a request.
    if (begins_line && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    begins_line = c == '\n';
    // roff takes these three for an escape, a hyphen that may be set as another character, and the
    // end of a quoted argument.
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '"' ? "\\(dq" : std::string(1, c);
  }
  return out;
}

std::vector<ManualPage> manual_pages(std::string_view version, std::string_view date) {
  std::vector<ManualPage> pages = {{.name = "disttf.1", .text = main_page(version, date)}};
  for (const CommandRow& row : commands()) {
    pages.push_back({.name = page_name(row.name) + ".1", .text = command_page(row, version, date)});
  }
  return pages;
}

}  // namespace disttf
