#include "main/help_text.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

namespace disttf {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kThreeScreens = 72;

// What most runs need, of any command that has more than three screens of flags.
const std::set<std::string>& usual_flags() {
  static const std::set<std::string> kUsual = {"batch_size", "chief_hosts",   "config",
                                               "cpus",       "data",          "data_dir",
                                               "dataset",    "eval_every",    "help",
                                               "help-all",   "host",          "image",
                                               "job_name",   "label_column",  "learning_rate",
                                               "log_level",  "memory",        "model",
                                               "name",       "optimizer",     "options",
                                               "output",     "page",          "port",
                                               "ps",         "ps_hosts",      "ps_replicas",
                                               "save_secs",  "secret",        "secret_file",
                                               "seed",       "sync_replicas", "target_accuracy",
                                               "task_index", "tls_cert",      "tls_key",
                                               "token_file", "train_dir",     "train_steps",
                                               "volumes",    "worker_hosts",  "workers"};
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
  // As CLI11 makes it, with the usual flags alone where all of them need too many lines.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const std::string all = CLI::Formatter::make_help(app, name, mode);
    if (mode == CLI::AppFormatMode::All || lines_of(all) <= kThreeScreens) {
      return all;
    }
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           usual_groups(*app) + make_footer(app);
  }
  std::string make_footer(const CLI::App* app) const override {
    std::string text = CLI::Formatter::make_footer(app);
    for (const Example& example : examples_) {
      text += std::string(&example == examples_.data() ? "\nExamples:\n" : "") + "  " +
              example.line + "\n      " + example.what + "\n";
    }
    return text;
  }

 private:
  // The usual flags, and how many others each group has.
  [[nodiscard]] std::string usual_groups(const CLI::App& app) const {
    std::string shown;
    std::string others;
    for (const std::string& group : app.get_groups()) {
      std::vector<const CLI::Option*> usual;
      std::size_t left = 0;
      for (const CLI::Option* option : app.get_options()) {
        if (group.empty() || option->get_group() != group || !option->nonpositional()) {
          continue;
        }
        if (is_usual(option)) {
          usual.push_back(option);
        } else {
          ++left;
        }
      }
      if (!usual.empty()) {
        shown += make_group(group, false, usual) + "\n";
      }
      if (left > 0) {
        others += "  " + group.substr(0, group.find_first_of(":(")) + ": " + std::to_string(left) +
                  " more\n";
      }
    }
    return shown + "These are the usual flags; " + app.get_name() + " --help-all lists also:\n" +
           others;
  }

  std::vector<Example> examples_;
};

// The position of "](" in the link whose "[" is at `from`; npos if that begins no link.
std::size_t target_of_link(std::string_view text, std::size_t from) {
  const std::size_t target = text.find("](", from);
  const std::size_t bracket = text.find(']', from);
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
  if (!description.empty() && description.front() != '`') {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  }
  return text;
}

std::string document_text(std::string_view description) {
  if (!description.ends_with(']')) {
    return std::string(description);
  }
  const std::size_t bracket = description.rfind(" [");
  return std::string(description.substr(0, bracket)) + "; default: " +
         std::string(description.substr(bracket + 2, description.size() - bracket - 3));
}

void show_plain_help(CLI::App& app, std::vector<Example> examples) {
  app.formatter(std::make_shared<PlainFormatter>(std::move(examples)));
}

std::optional<std::string> help_asked_for(const CLI::App& app, std::span<const std::string> words) {
  const auto has = [words](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  if (has("--help-all") || has("--help_all")) {
    return app.help("", CLI::AppFormatMode::All);
  }
  return has("--help") || has("-h") ? std::optional(app.help()) : std::nullopt;
}

}  // namespace disttf
