// Adds flags to one group of an app's help, each with the check of its kind.
//
// `names`: "--ps,-s". `type`: what the help calls the value. `about`: as in main/help_text.h. The
// help shows the present value as the default, unless it is empty or optional.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "main/flag_values.h"

namespace disttf {

class FlagGroup {
 public:
  // `title` is the heading of the group.
  FlagGroup(CLI::App& app, std::string title) : app_(app), title_(std::move(title)) {}

  // true or false.
  void toggle(const std::string& names, bool& value, const std::string& about) {
    app_.add_flag(names, value, about)->transform(boolean())->group(title_);
  }
  // A whole number from `least` to `most`.
  template <typename Number>
  void number(const std::string& names, Number& value, const char* type, std::uint64_t least,
              std::uint64_t most, const std::string& about) {
    add(names, value, type, about)->transform(whole_number(least, most));
  }
  // A number above 0.
  template <typename Number>
  void decimal(const std::string& names, Number& value, const char* type,
               const std::string& about) {
    add(names, value, type, about)->check(number_above_zero());
  }
  // One of `words`.
  void choice(const std::string& names, std::string& value, const char* type,
              std::vector<std::string> words, const std::string& about) {
    add(names, value, type, about)->check(one_of(std::move(words)));
  }
  // Any text, or several.
  template <typename Text>
  CLI::Option* text(const std::string& names, Text& value, const char* type,
                    const std::string& about) {
    return add(names, value, type, about);
  }

  // Entries between commas, or several such lists. An optional list shows whether it was given.
  template <typename List>
  CLI::Option* list(const std::string& names, List& value, const char* type,
                    const std::string& about) {
    const auto take = [&value](const std::vector<std::string>& texts) {
      value = split_at_commas(texts);
    };
    return app_.add_option_function<std::vector<std::string>>(names, take, about)
        ->type_name(type)
        ->group(title_);
  }

 private:
  template <typename Value>
  CLI::Option* add(const std::string& names, Value& value, const char* type,
                   const std::string& about) {
    CLI::Option* const option =
        app_.add_option(names, value, about)->type_name(type)->group(title_);
    if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
      option->capture_default_str();
    }
    return option;
  }

  CLI::App& app_;
  std::string title_;
};

// The groups of flags that code outside of the group refers to, by their titles in --help.
inline constexpr const char* kLaunchGroup = "Launch";
inline constexpr const char* kPageGroup = "Page";
inline constexpr const char* kCommandGroup = "Launch of any program: launch [FLAGS] -- COMMAND";
inline constexpr const char* kProgramGroup = "Your own program: --program -- COMMAND";
inline constexpr const char* kClusterGroup = "Cluster";
inline constexpr const char* kTransportGroup = "Transport and threads";
inline constexpr const char* kFindGroup =
    "Cluster found in the environment (docs/resolvers.md): what it leaves open";
inline constexpr const char* kRenderGroup = "Deployment";
// Hidden from --help.
inline constexpr const char* kHiddenGroup = "";

}  // namespace disttf
