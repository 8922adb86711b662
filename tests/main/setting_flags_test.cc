// Tests every row of the table of settings and everything derived from it, so a new row is tested
// without a new test.
#include "main/setting_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "main/commands/registry.h"
#include "main/config_file.h"
#include "main/flags/run.h"
#include "main/help_text.h"
#include "main/parse_flags.h"
#include "tests/data/scratch.h"
#include "tests/main/command_lines.h"
#include "tests/main/flag_document.h"

namespace disttf {
namespace {

using roles::RunConfig;
using roles::Setting;
using testing::HasSubstr;

// A valid value that is not the default.
struct AnotherValue {
  const RunConfig run{};

  std::string operator()(const roles::WholeNumber& value) const {
    return std::to_string(value.field.in(run) == value.most ? value.least : value.most);
  }
  std::string operator()(const roles::OptionalNumber& value) const {
    return std::to_string(value.least);
  }
  std::string operator()(const roles::Fraction& /*value*/) const { return "0.25"; }
  std::string operator()(const roles::Switch& value) const {
    return value.field.in(run) ? "false" : "true";
  }
  std::string operator()(const roles::Choice& value) const {
    return std::string(value.name(run) == value.names()[0] ? value.names()[1] : value.names()[0]);
  }
  std::string operator()(const roles::Model& /*value*/) const { return "cnn"; }
  std::string operator()(const roles::NumberList& /*value*/) const { return "7,8"; }
  std::string operator()(const roles::Compression& /*value*/) const { return "topk:0.5"; }
  std::string operator()(const roles::Word& /*value*/) const { return "other"; }
};

// Texts just beyond the bounds of the flag.
struct BeyondBounds {
  static std::vector<std::string> beyond(std::uint64_t least, std::uint64_t most) {
    std::vector<std::string> texts = {std::to_string(most + 1), "-1", "x", ""};
    if (least > 0) {
      texts.push_back(std::to_string(least - 1));
    }
    return texts;
  }
  std::vector<std::string> operator()(const roles::WholeNumber& value) const {
    return beyond(value.least, value.most);
  }
  std::vector<std::string> operator()(const roles::OptionalNumber& value) const {
    return beyond(value.least, value.most);
  }
  std::vector<std::string> operator()(const roles::Fraction& value) const {
    using Range = roles::Fraction::Range;
    std::vector<std::string> texts = {"nan", "inf", "-0.5"};
    if (value.range != Range::kZeroOrMore) {
      texts.emplace_back(value.range == Range::kAboveZero ? "0" : "1");
    }
    return texts;
  }
  std::vector<std::string> operator()(const roles::Switch& /*value*/) const { return {"perhaps"}; }
  std::vector<std::string> operator()(const roles::Choice& /*value*/) const {
    return {"", "none!"};
  }
  std::vector<std::string> operator()(const roles::Model& /*value*/) const { return {"", "none!"}; }
  std::vector<std::string> operator()(const roles::NumberList& value) const {
    return {"", "1,", std::to_string(value.most + 1), std::to_string(value.least - 1)};
  }
  std::vector<std::string> operator()(const roles::Compression& /*value*/) const {
    return {"topk:0", "topk:1"};
  }
  std::vector<std::string> operator()(const roles::Word& /*value*/) const { return {}; }
};

// Sets a value beyond the bounds in the configuration itself, as a peer could send it. Empty: the
// setting's kind has no bounds.
struct BreakBounds {
  RunConfig& run;

  std::string operator()(const roles::WholeNumber& value) const {
    value.field.in(run) = value.most + 1;
    return std::to_string(value.most + 1);
  }
  std::string operator()(const roles::OptionalNumber& value) const {
    value.field.in(run) = value.most + 1;
    return std::to_string(value.most + 1);
  }
  std::string operator()(const roles::Fraction& value) const {
    value.field.in(run) = -1;
    return "-1";
  }
  template <typename Other>
  std::string operator()(const Other& /*value*/) const {
    return {};
  }
};

class EachSetting : public testing::TestWithParam<const Setting*> {
 protected:
  [[nodiscard]] static const Setting& setting() { return *GetParam(); }
  [[nodiscard]] static std::string flag() { return "--" + std::string(setting().name); }
  [[nodiscard]] static std::string another() { return std::visit(AnotherValue{}, setting().value); }
  // Returns what remains of these arguments of `launch`.
  static WrittenSettings written(const std::vector<std::string>& words) {
    RunFlags run;
    CLI::App app("", "disttf launch");
    add_config_file(app, "--config");
    run.add_to(app, CredentialFlags::Of::kSeveralTasks);
    EXPECT_FALSE(parse_flags(app, words).has_value());
    return run.training.settings;
  }
  static RunConfig changed() {
    RunConfig run;
    EXPECT_TRUE(set_from_text(setting(), another(), run));
    return run;
  }
};

class EachFlag : public EachSetting {};
class EachBoundedSetting : public EachSetting {};

TEST_P(EachFlag, IsTakenFromTheCommandLineAndFromAFile) {
  EXPECT_EQ(text_of(setting(), written({flag() + "=" + another()}).run), another());
  const data::test::ScratchDirectory directory;
  const std::filesystem::path path = directory.path() / "settings.toml";
  std::ofstream(path) << setting().name << " = \"" << another() << "\"\n";
  EXPECT_EQ(text_of(setting(), written({"--config=" + path.string()}).run), another());
  EXPECT_EQ(text_of(setting(), written({}).run), text_of(setting(), RunConfig{}));
}

TEST_P(EachFlag, RefusesWhatIsBeyondItsBoundsOnTheCommandLine) {
  for (const std::string& text : std::visit(BeyondBounds{}, setting().value)) {
    const std::string sentence = refusal("launch " + flag() + "=" + text);
    EXPECT_THAT(sentence, testing::StartsWith(flag() + ": ")) << text;
  }
}

TEST_P(EachBoundedSetting, RefusesWhatIsBeyondItsBoundsInAConfiguration) {
  RunConfig run;
  run.trainers = 1;
  const std::string beyond = std::visit(BreakBounds{run}, setting().value);
  try {
    check_bounds(setting(), run);
    ADD_FAILURE() << beyond << " was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(flag() + ": " + beyond + " is not "));
  }
}

TEST_P(EachSetting, IsPublishedAndReadBack) {
  const RunConfig read = roles::run_config_from_json(to_json(changed()));
  EXPECT_EQ(text_of(setting(), read), another());
  for (const Setting& other : roles::settings()) {
    if (other.name != setting().name) {
      EXPECT_EQ(text_of(other, read), text_of(other, RunConfig{})) << other.name;
    }
  }
}

TEST_P(EachSetting, IsNamedWhereATaskContradictsTheChief) {
  const auto why = contradiction(changed(), {std::string(setting().name)}, RunConfig{});
  EXPECT_THAT(why.value_or("(no contradiction)"), testing::StartsWith(flag() + ": "));
}

TEST_P(EachSetting, IsNamedWhereARunGoesOnWithOtherWeights) {
  const auto why = difference(changed(), to_json(RunConfig{}));
  if (setting().changes_weights) {
    EXPECT_THAT(why.value_or("(no difference)"), testing::StartsWith(flag() + " is "));
  } else {
    EXPECT_EQ(why, std::nullopt);
  }
}

// Finds the line, or two lines, of the flag: "  --seed N=1    Of the initial values".
TEST_P(EachFlag, StandsInTheHelpWithItsDefault) {
  const std::string help = CommandApp(*find_command("launch")).help("", CLI::AppFormatMode::All);
  const std::size_t begin = help.find("\n  " + flag());
  ASSERT_NE(begin, std::string::npos);
  const std::string entry = help.substr(begin, help.find("\n  -", begin + 1) - begin);
  const auto* const choice = std::get_if<roles::Choice>(&setting().value);
  if (std::holds_alternative<roles::Switch>(setting().value)) {
    EXPECT_THAT(entry, HasSubstr(" [" + text_of(setting(), RunConfig{}) + "]"));
  } else if (choice != nullptr && !choice->automatic().empty()) {
    EXPECT_THAT(entry, HasSubstr("=" + std::string(choice->automatic())));
  } else if (setting().unset.empty()) {
    EXPECT_THAT(entry, HasSubstr("=" + text_of(setting(), RunConfig{})));
  } else {
    EXPECT_THAT(entry, HasSubstr("[" + setting().unset + "]"));
  }
  EXPECT_EQ(entry.find('`'), std::string::npos) << "only the document may use backticks";
}

TEST_P(EachFlag, StandsInTheDocument) {
  EXPECT_THAT(read_flag_document(), HasSubstr("\n| `" + flag() + "`"));
}

// Returns the rows for which `holds` is true.
template <typename Predicate>
auto rows_where(Predicate holds) {
  std::vector<const Setting*> rows;
  for (const Setting& each : roles::settings()) {
    if (holds(each)) {
      rows.push_back(&each);
    }
  }
  return testing::ValuesIn(rows);
}

std::string row_name(const testing::TestParamInfo<const Setting*>& row) {
  return std::string(row.param->name);
}

INSTANTIATE_TEST_SUITE_P(Settings, EachSetting, rows_where([](const Setting&) { return true; }),
                         row_name);
INSTANTIATE_TEST_SUITE_P(Settings, EachFlag,
                         rows_where([](const Setting& row) { return row.is_flag(); }), row_name);
INSTANTIATE_TEST_SUITE_P(Settings, EachBoundedSetting, rows_where([](const Setting& row) {
                           RunConfig run;
                           return !std::visit(BreakBounds{run}, row.value).empty();
                         }),
                         row_name);

TEST(Settings, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Setting& each : roles::settings()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
  }
}

TEST(HelpText, LeavesQuotesAndLinksToTheDocument) {
  EXPECT_EQ(plain_text("`a`: [falls](x.md#y) to 0; `b`: stays [no bound]"),
            "a: falls to 0; b: stays [no bound]");
  EXPECT_EQ(plain_text("of `--a`; the [b] and ] [c](d)"), "Of --a; the [b] and ] c");
  EXPECT_EQ(plain_text(""), "");
}

TEST(HelpText, TellsTheDocumentWhatGoesWithoutTheFlag) {
  EXPECT_EQ(document_text("`a`: [falls](x.md) to 0 [no bound]"),
            "`a`: [falls](x.md) to 0; default: no bound");
  EXPECT_EQ(document_text("stays"), "stays");
}

}  // namespace
}  // namespace disttf
