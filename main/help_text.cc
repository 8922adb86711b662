#include "main/help_text.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "run/monitor/core/text_table.h"

namespace disttf {
namespace {

constexpr std::size_t kColumns = 80;
// Screens of 24 lines.
constexpr std::size_t kThreeScreens = 72;

// What most runs need, of any command that has more than three screens of flags.
const std::set<std::string>& usual_flags() {
  static const std::set<std::string> kUsual = {
      "batch_size",    "chief_hosts",     "config",        "cpus",      "data",        "data_dir",
      "dataset",       "eval_every",      "help",          "help-all",  "host",        "image",
      "job_name",      "label_column",    "learning_rate", "log_level", "model",       "name",
      "optimizer",     "output",          "page",          "port",      "program",     "ps",
      "ps_hosts",      "ps_replicas",     "save_secs",     "secret",    "secret_file", "seed",
      "sync_replicas", "target_accuracy", "task_index",    "train_dir", "train_steps", "volumes",
      "worker_hosts",  "workers"};
  return kUsual;
}

bool is_usual(const CLI::Option* option) {
  return std::ranges::any_of(option->get_lnames(),
                             [](const std::string& name) { return usual_flags().contains(name); });
}

std::size_t lines_of(const std::string& text) {
  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    // A line longer than the terminal takes several.
    count += 1 + (line.empty() ? 0 : line.size() - 1) / kColumns;
  }
  return count;
}

class PlainFormatter : public CLI::Formatter {
 public:
  explicit PlainFormatter(std::vector<Example> examples) : examples_(std::move(examples)) {}

  std::string make_option_desc(const CLI::Option* option) const override {
    return plain_text(option->get_description());
  }
  // The description says what a positional word may be; the check serves completion only.
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? std::string() : CLI::Formatter::make_option_opts(option);
  }
  // As CLI11 makes it; in short where that is longer than three screens.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string all = CLI::Formatter::make_help(app, name, mode);
    if (mode == CLI::AppFormatMode::All || lines_of(all) <= kThreeScreens) {
      return all;
    }
    const std::string text = make_description(app) + make_usage(app, std::move(name)) +
                             make_positionals(app) + usual_groups(*app);
    // The footer explains the positional words. A command without any drops its footer if the short
    // help would be too long with it; the examples stay.
    const bool has_words = !make_positionals(app).empty();
    const std::string with_footer = text + make_footer(app);
    return has_words || lines_of(with_footer) <= kThreeScreens ? with_footer : text + examples();
  }
  std::string make_footer(const CLI::App* app) const override {
    return CLI::Formatter::make_footer(app) + examples();
  }

 private:
  [[nodiscard]] std::string examples() const {
    std::string text = examples_.empty() ? "" : "\nExamples:\n";
    for (const Example& example : examples_) {
      text += std::string("  ") + example.line + "\n      " + example.what + "\n";
    }
    return text;
  }

  // The usual flags, and how many others each group has.
  [[nodiscard]] static std::string usual_groups(const CLI::App& app) {
    std::string shown;
    std::vector<std::string> others;
    for (const std::string& group : app.get_groups()) {
      // What follows a colon or a bracket in a group's name explains it, and is left to the full
      // help.
      const std::string title = group.substr(0, std::min(group.find(':'), group.find(" (")));
      std::string usual;
      std::size_t left = 0;
      for (const CLI::Option* option : app.get_options()) {
        if (group.empty() || option->get_group() != group || !option->nonpositional()) {
          continue;
        }
        if (is_usual(option)) {
          usual += in_short(*option);
        } else {
          ++left;
        }
      }
      if (!usual.empty()) {
        shown += title + ":\n" + usual + "\n";
      }
      if (left > 0) {
        others.push_back(title + " (" + std::to_string(left) + ")");
      }
    }
    return shown + app.get_name() + " --help-all shows more flags:\n" +
           roles::wrapped(others, kColumns);
  }

  // On one or two lines: without the bounds and the choices of the value, and with the first part
  // of the description alone.
  [[nodiscard]] static std::string in_short(const CLI::Option& option) {
    constexpr std::size_t kFlagColumns = 30;
    std::string text = "  " + option.get_name(false, true);
    const std::string type = option.get_type_name();
    if (option.get_expected_max() != 0 && !type.empty()) {
      text += " " + type.substr(0, type.find_first_of(":{"));
    }
    if (!option.get_default_str().empty()) {
      text += "=" + option.get_default_str();
    }
    text += text.size() + 2 > kFlagColumns ? "\n" + std::string(kFlagColumns, ' ')
                                           : std::string(kFlagColumns - text.size(), ' ');
    return text + first_part(plain_text(option.get_description()), kColumns - kFlagColumns) + "\n";
  }

  // The longest part from the beginning that ends before one of these, and fits.
  [[nodiscard]] static std::string first_part(const std::string& about, std::size_t most) {
    if (about.size() <= most) {
      return about;
    }
    // From the strongest boundary to the weakest: a sentence's end leaves the most complete text.
    for (const auto& ends :
         {std::vector{"; ", ". ", " ["}, std::vector{": "}, std::vector{", ", " ("}}) {
      std::size_t found = 0;
      for (const char* end : ends) {
        for (std::size_t at = about.find(end); at <= most; at = about.find(end, at + 1)) {
          found = std::max(found, at);
        }
      }
      if (found != 0) {
        return about.substr(0, found);
      }
    }
    return about;
  }

  std::vector<Example> examples_;
};

// The position of "](" in the link whose "[" is at `from`; npos if that begins no link.
std::size_t target_of_link(std::string_view text, std::size_t from) {
  const std::size_t target = text.find("](", from);
  const std::size_t bracket = text.find(']', from);
  // The first "]" must be that of "](": else the bracket holds a default value, which stays in the
  // text.
  return target == bracket && text.find(')', target) != std::string_view::npos
             ? target
             : std::string_view::npos;
}

}  // namespace

std::string plain_text(std::string_view description) {
  std::string text;
  std::size_t target = std::string_view::npos;  // of the link being read
  for (std::size_t at = 0; at < description.size(); ++at) {
    const char c = description[at];
    if (at == target) {
      at = description.find(')', at);
      target = std::string_view::npos;
    } else if (c == '[' && target_of_link(description, at) != std::string_view::npos) {
      target = target_of_link(description, at);
    } else if (c != '`') {
      text += c;
    }
  }
  // A quoted first word is a value or a name, whose letter case matters.
  if (!description.empty() && description.front() != '`') {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  }
  return text;
}

void show_plain_help(CLI::App& app, std::vector<Example> examples) {
  app.formatter(std::make_shared<PlainFormatter>(std::move(examples)));
}

std::string flags_hint(const CLI::App& app) {
  // Not --help, which leaves out the less usual flags of the large commands.
  return " (" + app.get_name() + " --help-all lists the flags)";
}

std::optional<std::string> help_asked_for(const CLI::App& app, std::span<const std::string> words) {
  const auto has = [words](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  // Before parsing, so that a wrong or missing flag does not hide the help.
  if (has("--help-all") || has("--help_all")) {
    return app.help("", CLI::AppFormatMode::All);
  }
  return has("--help") || has("-h") ? std::optional(app.help()) : std::nullopt;
}

}  // namespace disttf
