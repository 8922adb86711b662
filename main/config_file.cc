#include "main/config_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <istream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "main/help_text.h"
#include "main/model_file.h"
#include "main/parse_flags.h"
#include "main/toml_text.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

// Quotes the value of `key = word`: such lines were accepted before the file was parsed as TOML.
// Nullopt: the line has another form.
std::optional<std::string> with_quotes(std::string_view line) {
  constexpr std::string_view kOfOtherValues = "\"'[]{}";
  constexpr std::string_view kBlanks = " \t\r";
  // A # within quotes is no comment, but such a line has a quote before it and is left alone below.
  const std::size_t comment = std::min(line.find('#'), line.size());
  const std::string_view code = line.substr(0, comment);
  const std::size_t equals = code.find('=');
  if (equals == std::string_view::npos || code.find_first_of(kOfOtherValues) < code.size()) {
    return std::nullopt;
  }
  const std::size_t begin = code.find_first_not_of(kBlanks, equals + 1);
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view value = code.substr(begin, code.find_last_not_of(kBlanks) + 1 - begin);
  return fmt::format("{} '{}' {}", code.substr(0, equals + 1), value, line.substr(comment));
}

class Recipe : public CLI::ConfigTOML {
 public:
  explicit Recipe(const CLI::App& app) : app_(app) {}

  [[nodiscard]] std::vector<CLI::ConfigItem> from_config(std::istream& in) const override {
    const std::string file{std::istreambuf_iterator<char>(in), {}};
    try {
      return items_of(file);
    } catch (const TomlError& error) {
      throw std::invalid_argument(
          fmt::format("--{}: {}, line {}: {}", name(), path(), error.line(), error.what()));
    }
  }

 private:
  [[nodiscard]] std::string name() const { return app_.get_config_ptr()->get_lnames().front(); }
  [[nodiscard]] std::string path() const { return app_.get_config_ptr()->as<std::string>(); }

  [[nodiscard]] std::vector<CLI::ConfigItem> items_of(std::string_view file) const {
    // The layers are cut off before the flags are parsed: read_model_file() reads them, and keys of
    // a layer are no flags.
    const std::string_view text = checked_utf8(file);
    const std::size_t layers = begin_of_layers(text);
    std::vector<CLI::ConfigItem> read = flags_of(escape_non_ascii(text.substr(0, layers)));
    if (layers == text.size()) {
      return read;
    }
    if (std::ranges::any_of(read,
                            [](const CLI::ConfigItem& item) { return item.name == "model"; })) {
      throw std::invalid_argument("--config: " + path() +
                                  " has the key model and a [[layer]]; one of them is allowed");
    }
    if (!is_model_file(path())) {
      throw std::invalid_argument("--config: " + path() +
                                  " has a [[layer]], so its name must end in .toml");
    }
    // The same file then counts as --model FILE: one code path reads and checks layers.
    read.push_back(item_of("model", {path()}));
    return read;
  }

  static CLI::ConfigItem item_of(const std::string& key, std::vector<std::string> inputs) {
    CLI::ConfigItem item;
    item.name = key;
    item.inputs = std::move(inputs);
    return item;
  }

  [[nodiscard]] std::vector<CLI::ConfigItem> flags_of(std::string text) const {
    const toml::table table = table_of(text);
    std::vector<std::pair<std::string, const toml::node*>> in_order;
    for (const auto& [key, value] : table) {
      in_order.emplace_back(unescape_non_ascii(key.str()), &value);
    }
    // In the file's order, so that the first of two wrong keys is reported.
    std::ranges::stable_sort(in_order, {}, [](const auto& each) { return line(*each.second); });
    // Two spellings of a key, with - and with _, are the same option.
    std::map<const CLI::Option*, std::string> given;
    std::vector<CLI::ConfigItem> read;
    for (const auto& [key, value] : in_order) {
      const CLI::Option& option = option_of(key, *value);
      const auto [first, is_first] = given.emplace(&option, key);
      if (!is_first) {
        throw TomlError(line(*value), net::quoted(key) + " is " + net::quoted(first->second) +
                                          " once more; once is allowed");
      }
      read.push_back(item_of(option.get_lnames().front(), inputs_of(option, key, *value, text)));
    }
    return read;
  }

  // Quotes values on those lines of `text` that are wrong without quotes.
  static toml::table table_of(std::string& text) {
    // The bound also limits the time: every round parses the whole text.
    constexpr int kMostLines = 1000;  // more than there are flags
    // Each round fixes one line; a line that is still wrong afterwards ends the loop.
    for (int each = 0;; ++each) {
      try {
        return parse_toml(text);
      } catch (const TomlError& error) {
        const std::string_view wrong = line_of(text, error.line());
        const std::optional<std::string> right = with_quotes(wrong);
        // The exception of this round, not of the first: lines are fixed from the top, so it names
        // the line that stays wrong.
        if (!right || each == kMostLines) {
          throw;
        }
        // line_of() returns a view into `text`, so the pointers' difference is the offset of the
        // line.
        text.replace(static_cast<std::size_t>(wrong.data() - text.data()), wrong.size(), *right);
      }
    }
  }

  static std::size_t line(const toml::node& node) { return node.source().begin.line; }

  [[nodiscard]] const CLI::Option& option_of(const std::string& key, const toml::node& at) const {
    std::string flag = "--" + key;
    // Keys may be spelled with dashes, as on the command line.
    std::replace(flag.begin() + 2, flag.end(), '-', '_');
    const CLI::Option* const option = app_.get_option_no_throw(flag);
    // --help and --config would be read as flags of the file otherwise.
    if (option == nullptr || !option->get_configurable() || option == app_.get_help_ptr() ||
        option == app_.get_help_all_ptr()) {
      throw std::invalid_argument(
          fmt::format("--{}: {} is not a flag of {}, so not a key of {}, line {}{}", name(),
                      net::quoted(key), app_.get_name(), path(), line(at), flags_hint(app_)));
    }
    return *option;
  }

  static std::vector<std::string> inputs_of(const CLI::Option& option, const std::string& key,
                                            const toml::node& value, std::string_view text) {
    if (const toml::array* const array = value.as_array(); array != nullptr) {
      if (option.get_expected_max() <= 1 || array->empty()) {
        throw TomlError(line(value), array->empty()
                                         ? key + ": the array is empty; it needs at least one value"
                                         : key + " takes one value, not an array");
      }
      std::vector<std::string> inputs;
      for (const toml::node& each : *array) {
        inputs.push_back(input_of(key, each, text));
      }
      return inputs;
    }
    std::string input = input_of(key, value, text);
    // Only booleans are normalized, as on the command line: for other flags "yes" or 1 is a value.
    return {option.get_expected_max() == 0 ? as_boolean(input).value_or(input) : input};
  }

  static std::string input_of(const std::string& key, const toml::node& value,
                              std::string_view text) {
    if (value.is_string()) {
      return unescape_non_ascii(value.as_string()->get());
    }
    if (value.is_integer()) {
      return std::to_string(value.as_integer()->get());
    }
    if (value.is_boolean()) {
      return value.as_boolean()->get() ? "true" : "false";
    }
    if (value.is_floating_point()) {
      return number_at(text, value.source().begin);
    }
    throw TomlError(line(value), key +
                                     " is a table, a date or an array within an array; a flag "
                                     "takes a number, true or false, a text in quotes, or an "
                                     "array of these");
  }

  // The digits as the file has them, so that they are rounded once, to the flag's own type.
  static std::string number_at(std::string_view text, const toml::source_position& at) {
    const std::string_view rest = line_of(text, at.line).substr(at.column - 1);
    std::string number(rest.substr(0, rest.find_first_not_of("0123456789+-._einfaE")));
    std::erase(number, '_');
    return number.starts_with('+') ? number.substr(1) : number;
  }

  const CLI::App& app_;
};

}  // namespace

CLI::Option* add_config_file(CLI::App& app, const std::string& names) {
  app.config_formatter(std::make_shared<Recipe>(app));
  return app.set_config(names, "", "Read flags from a TOML file; the command line wins");
}

}  // namespace disttf
