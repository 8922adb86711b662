// Tests every row of the table of settings and everything derived from it, so a new row is tested
// without a new test.
#include "main/setting_flags.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "main/commands/registry.h"
#include "main/config_file.h"
#include "main/flags/run.h"
#include "main/help_text.h"
#include "main/parse_flags.h"
#include "math/model_spec.h"
#include "run/run_config.h"
#include "tests/data/scratch.h"
#include "tests/main/command_lines.h"
#include "tests/main/flag_document.h"
#include "tests/support/thrown.h"

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
  EXPECT_THAT(sentence_of([&] { check_bounds(setting(), run); }),
              testing::StartsWith(flag() + ": " + beyond + " is not "))
      << beyond << " was accepted";
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

class Recipe : public testing::Test {
 protected:
  [[nodiscard]] std::string put(const std::string& text, const std::string& name = "r.toml") const {
    const auto path = directory_.path() / name;
    data::test::write(path, data::test::bytes_of(text));
    return path.string();
  }

 private:
  data::test::ScratchDirectory directory_;
};
const std::string kTwoLayers =
    "[[layer]]\ntype = \"relu\"\n[[layer]]\ntype = \"dense\"\nunits = 10\n";

TEST_F(Recipe, HasFlagsAndLayersAndTheTasksOfALaunchGetBoth) {
  const std::string path = put("train_steps = 9\n\n" + kTwoLayers);
  EXPECT_THAT(parse_launch("launch --config " + path).task_arguments,
              testing::UnorderedElementsAre("--train_steps=9", "--model=" + path));
  const roles::RunConfig config =
      parse_task("worker --task_index 0 --config " + path + kHosts).config;
  EXPECT_EQ(config.train_steps, 9U);
  ASSERT_THAT(config.model.layers, testing::SizeIs(2));
  EXPECT_EQ(config.model.layers[1].type, "dense");
}

TEST(Recipes, OfTheRepositoryAreRead) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DISTTF_SOURCE_DIR "/recipes")) {
    if (entry.path().extension() == ".toml") {
      ++count;
      const std::string line = "worker --task_index 0 --config " + entry.path().string() + kHosts;
      const roles::RunConfig config = parse_task(line).config;
      EXPECT_NO_THROW(math::validate(config.model)) << entry.path();
      EXPECT_NO_THROW(roles::validate(config)) << entry.path();
    }
  }
  EXPECT_GE(count, 1U);
}

// Returns the rows that begin with `name`, or with an empty cell below such a row.
std::vector<std::string> rows_of(const std::string& name) {
  std::vector<std::string> rows;
  std::ifstream file(DISTTF_SOURCE_DIR "/recipes/README.md");
  bool is_its = false;
  for (std::string line; std::getline(file, line);) {
    is_its = line.starts_with("| `" + name + "` |") || (is_its && line.starts_with("| |"));
    if (is_its) {
      rows.push_back(line);
    }
  }
  return rows;
}

TEST(Recipes, HaveTheResultsOfFiveSeedsInTheirDocument) {
  static const std::regex kAccuracies(
      R"(\| (0\.\d{4}), (0\.\d{4}), (0\.\d{4}), (0\.\d{4}), (0\.\d{4}) \| (0\.\d{4}) \|)");
  static const std::regex kHash(R"(\| (\d) \| `[0-9a-f]{64}` \|)");
  for (const auto& entry : std::filesystem::directory_iterator(DISTTF_SOURCE_DIR "/recipes")) {
    if (entry.path().extension() != ".toml") {
      continue;
    }
    std::size_t results = 0;
    std::string seeds;
    for (const std::string& row : rows_of(entry.path().filename().string())) {
      std::smatch found;
      if (std::regex_search(row, found, kAccuracies)) {
        ++results;
        double sum = 0;
        for (std::size_t seed = 1; seed <= 5; ++seed) {
          sum += std::stod(found[seed]);
        }
        EXPECT_NEAR(std::stod(found[6]), sum / 5, 0.00005001) << row;
      } else if (std::regex_search(row, found, kHash)) {
        seeds += found[1];
      }
    }
    EXPECT_EQ(results, 1U) << entry.path();
    EXPECT_EQ(seeds, "12345") << entry.path();
  }
}

TEST_F(Recipe, YieldsToTheCommandLine) {
  const std::string path = put("train_steps = 9\n\n" + kTwoLayers);
  const roles::RunConfig config =
      parse_task("worker --task_index 0 --train_steps 8 --model softmax --config " + path + kHosts)
          .config;
  EXPECT_EQ(config.train_steps, 8U);
  EXPECT_EQ(config.model.kind, math::ModelKind::kSoftmax);
  EXPECT_THAT(config.model.layers, testing::IsEmpty());
}

TEST_F(Recipe, IsRefusedWithASentence) {
  const std::string both = put("model = \"mlp\"\n" + kTwoLayers);
  EXPECT_EQ(refusal("worker --task_index 0 --config " + both + kHosts),
            "--config: " + both + " has the key model and a [[layer]]; one of them is allowed");
  const std::string name = put(kTwoLayers, "recipe");
  EXPECT_EQ(refusal("worker --task_index 0 --config " + name + kHosts),
            "--config: " + name + " has a [[layer]], so its name must end in .toml");
  const std::string wrong = put("train_steps = 9\n[[layer]]\ntype = \"lstm\"\n");
  EXPECT_THAT(refusal("worker --task_index 0 --config " + wrong + kHosts),
              testing::HasSubstr("--model: " + wrong + ", line 3: layer 1: type: \"lstm\" is not"));
}

}  // namespace
}  // namespace disttf
