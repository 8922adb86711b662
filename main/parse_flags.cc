#include "main/parse_flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "main/help_text.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

// A lone - is a word.
bool is_flag(std::string_view word) { return word.size() > 1 && word.starts_with("-"); }

// A short flag's value may follow without a space: -s2.
std::string flag_name(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

// Checks the words before CLI11 parses them, so that a message names the wrong word. This works
// because every value belongs to a flag. The options check the values themselves.
class WordCheck {
 public:
  WordCheck(const CLI::App& app, std::span<const std::string> words) : app_(app), words_(words) {}

  // Throws std::invalid_argument.
  void run() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      // A lone - is a word here: no flag takes it, and predict removes its own before this check.
      if (!is_flag(word)) {
        fail(net::quoted(word) +
             " is not expected here; values follow their flag, as in --flag value");
      }
      const std::string name = flag_name(word);
      const CLI::Option* option = app_.get_option_no_throw(name);
      if (option == nullptr) {
        fail(net::quoted(name) + " is not a flag of " + app_.get_name());
      }
      // normalized() has joined a boolean's value to its flag, so any word that follows is wrong.
      if (option->get_expected_max() == 0) {
        check_flag(name, word);
      } else {
        check_value(*option, name, name.size() == word.size() ? "" : word.substr(name.size()));
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& sentence) const {
    throw std::invalid_argument(sentence + flags_hint(app_));
  }

  // Whether the word can only be a value. -5 counts as one, so that the flag's check rejects it.
  [[nodiscard]] bool is_value(std::size_t at) const {
    constexpr std::string_view kDigits = "0123456789.";
    return at < words_.size() &&
           (!words_[at].starts_with("-") ||
            (words_[at].size() > 1 && kDigits.find(words_[at][1]) != std::string_view::npos));
  }

  void check_flag(const std::string& name, const std::string& word) const {
    if (word.size() > name.size() && word.substr(name.size()) == "=") {
      fail(name + ": the value after = is missing; true or false");
    }
    if (word.size() == name.size() && is_value(at_)) {
      std::string sentence = name + ": " + net::quoted(words_[at_]) + " is not true or false";
      // The only flag whose value a user is likely to take for something else.
      if (name == "--program") {
        sentence += "; the program itself comes after --: --program -- COMMAND";
      }
      fail(sentence);
    }
  }

  void check_value(const CLI::Option& option, const std::string& name, std::string value) {
    // A word that begins with a hyphen is taken for the next flag, not for a value: else a
    // forgotten value would swallow that flag, and the message would name the wrong one.
    if (value.empty() && is_value(at_)) {
      value = words_[at_++];
    } else if (value.empty() && option.get_expected_min() == 0) {
      return;  // its value may be left out
    } else if (value.empty() || value == "=") {
      fail(name + ": its value is missing; it takes " + option.get_type_name());
    } else if (value.starts_with("=")) {
      value.erase(0, 1);
    }
    if (&option == app_.get_config_ptr()) {
      // Before CLI11 opens the file: CLI11 reports a missing file without the reason.
      check_readable(name, value);
    }
    // A list of values may be split over several words.
    if (option.get_expected_max() > 1) {
      while (is_value(at_)) {
        ++at_;
      }
      return;
    }
    // By option, not by name: -s and --ps are one flag.
    const auto [first, is_first] = values_.emplace(&option, value);
    if (!is_first) {
      fail(name + ": given twice, with " + net::quoted(first->second) + " and " +
           net::quoted(value) + "; once is allowed");
    }
  }

  void check_readable(const std::string& name, const std::string& path) const {
    std::error_code error;
    std::string why;
    if (::access(path.c_str(), R_OK) != 0) {
      why = std::generic_category().message(errno);
    } else if (std::filesystem::is_directory(path, error)) {
      why = std::generic_category().message(EISDIR);
    } else if (!std::filesystem::is_regular_file(path, error)) {
      // An update of a launch parses the same words, and with them the file, again; a pipe is empty
      // by then.
      why = "it is a pipe or a device, but launch reads the file more than once";
    }
    if (!why.empty()) {
      fail(name + ": " + net::quoted(path) + " is not a file that can be read: " + why);
    }
  }

  const CLI::App& app_;
  std::span<const std::string> words_;
  std::size_t at_ = 0;
  std::map<const CLI::Option*, std::string> values_;  // of the options seen so far
};

// "INI was not able to parse training.batch_siz" -> "training.batch_siz"
std::string unknown_key(const CLI::ConfigError& error) {
  const std::string text = error.what();
  // "cluster: This option is not allowed in a configuration file"
  if (const std::size_t colon = text.find(": This option "); colon != std::string::npos) {
    return text.substr(0, colon);
  }
  std::string key = text.substr(text.rfind(' ') + 1);
  if (key.ends_with(".++")) {  // CLI11's mark of a section's head
    key.erase(key.size() - 3);
  }
  return key;
}

std::vector<std::string> normalized(const CLI::App& app, std::span<const std::string> arguments) {
  return normalize_arguments(arguments, [&app](std::string_view name) {
    const CLI::Option* option = app.get_option_no_throw(std::string(name));
    return option != nullptr && option->get_expected_max() == 0;
  });
}

}  // namespace

std::optional<std::string> parse_flags(CLI::App& app, std::span<const std::string> arguments) {
  // The order matters: names are spelled as the options before they are looked up, and --help wins
  // over any wrong word.
  std::vector<std::string> words = normalized(app, arguments);
  if (auto help = help_asked_for(app, words)) {
    return help;
  }
  WordCheck(app, words).run();
  std::reverse(words.begin(), words.end());  // CLI11 takes words from the back
  try {
    app.parse(std::move(words));
    // ConfigError is a ParseError, so it must be caught first.
  } catch (const CLI::ConfigError& error) {
    throw std::invalid_argument("--" + app.get_config_ptr()->get_lnames().front() + ": " +
                                net::quoted(unknown_key(error)) + " is not a flag of " +
                                app.get_name() + ", so not a key of its file" + flags_hint(app));
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(error.what() + flags_hint(app));
  }
  return std::nullopt;
}

std::vector<std::string> words_first(const CLI::App& app, std::span<const std::string> arguments) {
  const auto end = std::ranges::find(arguments, "--");
  const std::vector<std::string> all = normalized(app, {arguments.begin(), end});
  std::vector<std::string> words;
  std::vector<std::string> rest;
  auto at = all.begin();
  while (at != all.end()) {
    if (!is_flag(*at)) {
      words.push_back(*at++);
      continue;
    }
    const std::string name = flag_name(*at);
    const CLI::Option* const option = app.get_option_no_throw(name);
    if (option == nullptr) {
      break;  // parse_flags() reports it
    }
    int values = *at == name ? option->get_expected_max() : 0;
    rest.push_back(*at++);
    for (; values > 0 && at != all.end() && !at->starts_with("-"); --values) {
      rest.push_back(*at++);
    }
  }
  words.insert(words.end(), rest.begin(), rest.end());
  words.insert(words.end(), at, all.end());
  words.insert(words.end(), end, arguments.end());
  return words;
}

std::optional<std::string> as_boolean(std::string_view word) {
  const std::string lower = net::to_lower(word);
  if (lower == "true" || lower == "1" || lower == "yes" || lower == "on") {
    return "true";
  }
  if (lower == "false" || lower == "0" || lower == "no" || lower == "off") {
    return "false";
  }
  return std::nullopt;
}

std::vector<std::string> normalize_arguments(std::span<const std::string> arguments,
                                             const std::function<bool(std::string_view)>& is_flag) {
  std::vector<std::string> out;
  for (std::size_t each = 0; each < arguments.size(); ++each) {
    const std::string& argument = arguments[each];
    // Values are never touched: only names have a second spelling, and a value may contain hyphens.
    if (!argument.starts_with("--")) {
      out.push_back(argument);
      continue;
    }
    const std::size_t equals = std::min(argument.find('='), argument.size());
    std::string name = argument.substr(0, equals);
    std::replace(name.begin() + 2, name.end(), '-', '_');
    std::string value = argument.substr(equals);  // with its "=", or empty
    if (is_flag(name)) {
      if (!value.empty()) {
        // What is no boolean stays as it is: the flag's check reports it with the user's spelling.
        value = "=" + as_boolean(value.substr(1)).value_or(value.substr(1));
      } else if (each + 1 < arguments.size() && as_boolean(arguments[each + 1])) {
        value = "=" + *as_boolean(arguments[++each]);
      }
    }
    out.push_back(name + value);
  }
  return out;
}

}  // namespace disttf
