#include "main/setting_flags.h"

#include <CLI/CLI.hpp>
#include <variant>
#include <vector>

#include "main/flag_values.h"
#include "main/flags/training.h"
#include "main/model_file.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

using roles::Setting;

// Adds the check of a flag's text, by the kind of its setting.
struct CheckOf {
  CLI::Option& option;

  void operator()(const roles::WholeNumber& value) const {
    option.transform(whole_number(value.least, value.most));
  }
  void operator()(const roles::OptionalNumber& value) const {
    option.transform(whole_number(value.least, value.most));
  }
  void operator()(const roles::Fraction& value) const {
    using Range = roles::Fraction::Range;
    option.check(value.range == Range::kAboveZero    ? number_above_zero()
                 : value.range == Range::kZeroOrMore ? number_from_zero()
                                                     : fraction_below_one());
  }
  void operator()(const roles::Switch& /*value*/) const { option.transform(boolean()); }
  void operator()(const roles::Choice& value) const {
    if (value.automatic().empty()) {  // else the allowed values depend on this CPU
      option.check(one_of({value.names().begin(), value.names().end()}));
    }
  }
  void operator()(const roles::Model& /*value*/) const {
    option.check([](const std::string& text) {
      return is_model_file(text) || math::model_from_name(text)
                 ? std::string()
                 : net::quoted(text) + " is not " + model_choices();
    });
  }
  void operator()(const roles::NumberList& value) const {
    option.check(comma_list_of(whole_number(value.least, value.most)));
  }
  void operator()(const roles::Compression& /*value*/) const { option.check(compression()); }
  void operator()(const roles::Word& /*value*/) const {}
};

std::string_view automatic(const Setting& setting) {
  const auto* const choice = std::get_if<roles::Choice>(&setting.value);
  return choice == nullptr ? std::string_view() : choice->automatic();
}

// Stores a setting. REQUIRES: its check, if any, has accepted the text.
void write(const Setting& setting, const std::string& text, WrittenSettings& written) {
  const std::string name(setting.name);
  // "auto" is the same as no flag: the value is chosen later, and a trainer compares no explicit
  // one with the chief's.
  if (!automatic(setting).empty() && text == automatic(setting)) {
    written.given.erase(name);
    return;
  }
  const auto* const model = std::get_if<roles::Model>(&setting.value);
  if (model != nullptr && is_model_file(text)) {
    // Read while the flags are parsed: later, in the sandbox, the file could not be opened, and
    // other tasks get the layers from the chief.
    model->field.in(written.run).layers = read_model_file(text);
  } else if (!set_from_text(setting, text, written.run)) {
    // The check has accepted every other text; only the instruction sets of this CPU are left to
    // it.
    refuse_isa(text);
  }
  written.given.insert(name);
}

// The default for the help, which shows none for booleans.
std::string default_text(const Setting& setting) {
  if (std::holds_alternative<roles::Switch>(setting.value)) {
    return {};
  }
  if (!automatic(setting).empty()) {
    return std::string(automatic(setting));
  }
  return setting.unset.empty() ? text_of(setting, roles::RunConfig{}) : std::string();
}

// The description in the format of help_text.h.
std::string description_of(const Setting& setting) {
  std::string text = setting.about;
  if (std::holds_alternative<roles::Switch>(setting.value)) {
    text += " [" + text_of(setting, roles::RunConfig{}) + "]";
  } else if (!setting.unset.empty()) {
    text += " [" + setting.unset + "]";
  }
  return text;
}

CLI::Option* add_option(CLI::App& app, const std::string& names, const Setting& setting,
                        WrittenSettings& written) {
  // A boolean is bound directly and never in `given`: no code depends on whether one was written.
  if (const auto* const value = std::get_if<roles::Switch>(&setting.value)) {
    return app.add_flag(names, value->field.in(written.run), description_of(setting));
  }
  CLI::Option* option = nullptr;
  if (std::holds_alternative<roles::NumberList>(setting.value)) {
    option = app.add_option_function<std::vector<std::string>>(
        names,
        [&setting, &written](const std::vector<std::string>& texts) {
          // A list may come in several texts: as several words, or as an array of the file.
          write(setting, net::joined(texts, ","), written);
        },
        description_of(setting));
  } else {
    option = app.add_option_function<std::string>(
        names, [&setting, &written](const std::string& text) { write(setting, text, written); },
        description_of(setting));
  }
  return option->type_name(std::string(setting.argument));
}

}  // namespace

void add_setting_flags(CLI::App& app, roles::SettingGroup group, const std::string& title,
                       WrittenSettings& written) {
  // The lambdas below keep references to the settings: the table is static.
  for (const Setting& setting : roles::settings()) {
    if (!setting.is_flag() || setting.group != group) {
      continue;
    }
    std::string names = "--" + std::string(setting.name);
    if (!setting.other_name.empty()) {
      names += ",--" + std::string(setting.other_name);
    }
    CLI::Option* const option = add_option(app, names, setting, written);
    // The check runs before the function of the option, as write() requires.
    std::visit(CheckOf{*option}, setting.value);
    option->default_str(default_text(setting))->group(title);
  }
}

}  // namespace disttf
