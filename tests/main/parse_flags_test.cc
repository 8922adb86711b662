// How flags are read from the command line and from a file, and how errors are reported.
#include "main/parse_flags.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "main/commands/registry.h"
#include "main/config_file.h"
#include "main/flags/cluster.h"
#include "main/flags/run.h"
#include "main/help_text.h"
#include "tests/main/command_lines.h"
#include "tests/support/thrown.h"

namespace disttf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// The flags of a task, in an app of their own.
struct TaskFlags {
  ClusterFlags cluster;
  RunFlags run;
};

TaskFlags flags_of(const std::string& line) {
  TaskFlags flags;
  CLI::App app("", "disttf worker");
  add_config_file(app, "--config");
  flags.cluster.add_identity(app, /*names_job=*/false);
  flags.cluster.add_lists(app);
  flags.run.add_to(app, CredentialFlags::Of::kOneTask);
  EXPECT_EQ(parse_flags(app, words(line)), std::nullopt);
  return flags;
}

// The help of a command.
std::string help_of(const char* command, const std::string& line) {
  CommandApp app(*find_command(command));
  return parse_flags(app, words(line)).value_or("");
}

TEST(ParseFlags, TakesValuesAsWordsAndBehindEqualsSigns) {
  const TaskFlags flags = flags_of("--batch_size 7 --train_steps=9");
  EXPECT_EQ(flags.run.training.settings.run.batch_size, 7U);
  EXPECT_EQ(flags.run.training.settings.run.train_steps, 9U);
}

TEST(ParseFlags, TakesHyphensForUnderscores) {
  EXPECT_EQ(flags_of("--batch-size 7").run.training.settings.run.batch_size, 7U);
}

TEST(ParseFlags, TakesTheOtherNamesOfAFlag) {
  EXPECT_EQ(flags_of("--worker_index 1").cluster.given.task_index, 1);
  EXPECT_EQ(flags_of("--chief_hosts c:1").cluster.given.chief_host, "c:1");
  EXPECT_FALSE(flags_of("--sync_replica False").run.training.settings.run.sync_replicas);
}

TEST(ParseFlags, TakesBooleansInEveryForm) {
  for (const char* line : {"--print_weights_hash", "--print_weights_hash=true",
                           "--print_weights_hash True", "--print-weights-hash 1"}) {
    EXPECT_TRUE(flags_of(line).run.output.print_weights_hash) << line;
  }
  for (const char* line :
       {"", "--print_weights_hash=False", "--print_weights_hash false", "--print_weights_hash 0"}) {
    EXPECT_FALSE(flags_of(line).run.output.print_weights_hash) << line;
  }
}

TEST(ParseFlags, TakesListsWithCommas) {
  EXPECT_THAT(flags_of("--hidden_units 128,64").run.training.settings.run.model.hidden,
              ElementsAre(128, 64));
  EXPECT_THAT(flags_of("--hidden_units=32").run.training.settings.run.model.hidden,
              ElementsAre(32));
  EXPECT_THAT(flags_of("--data_url http://a/,https://b/x").run.data.data_url,
              ElementsAre("http://a/", "https://b/x"));
  EXPECT_THAT(flags_of("--data_url http://a/ --data_url http://b/").run.data.data_url,
              ElementsAre("http://a/", "http://b/"));
}

TEST(ParseFlags, TakesShortNames) {
  const roles::LaunchOptions options = parse_launch("launch -s 3 -w4");
  EXPECT_EQ(options.ps, 3U);
  EXPECT_EQ(options.workers, 4U);
}

TEST(ParseFlags, ReadsLeadingZerosAsDecimal) {
  EXPECT_EQ(flags_of("--batch_size 010").run.training.settings.run.batch_size, 10U);
}

TEST(ParseFlags, ALastFlagMayBeBare) {
  EXPECT_TRUE(parse_launch("launch --workers 1 --chief").chief);
}

// ---- Help ----

TEST(ParseFlags, HelpWinsOverEverythingElse) {
  EXPECT_THAT(help_of("launch", "--nonsense --batch_size -1 --help"), HasSubstr("Usage: "));
}

struct Help {
  const char* command;
  std::vector<std::string> texts;
};

TEST(ParseFlags, HelpOfEveryCommandHasItsGroupsAndDefaults) {
  const std::vector<std::string> training = {
      "Training", "--train_steps", "=2000",    "--hidden_units",
      "=100",     "--model",       "=mlp",     "Evaluation and results",
      "Data",     "=./input_data", "Timeouts", "SECONDS",
      "=300",     "Log",           "=info",    "--config FILE"};
  const std::vector<std::string> cluster = {"Cluster", "--task_index,--worker_index", "--ps_hosts",
                                            "HOST:PORT,..."};
  const std::vector<Help> helps = {
      {"ps", cluster},
      {"worker", cluster},
      {"chief", cluster},
      {"train", {"Cluster", "--job_name"}},
      {"launch", {"Launch", "-w,--workers", "=2"}},
      {"download", {"Data", "--data_url", "Log"}},
  };
  for (const Help& help : helps) {
    const std::string text = help_of(help.command, "--help-all");
    for (const std::string& expected : help.texts) {
      EXPECT_THAT(text, HasSubstr(expected));
    }
    for (const std::string& expected : training) {
      if (std::string(help.command) != "download") {
        EXPECT_THAT(text, HasSubstr(expected));
      }
    }
  }
}

TEST(ParseFlags, HelpDoesNotShowWhatIsBetweenLaunchAndItsChildren) {
  const std::string text = help_of("worker", "--help");
  EXPECT_EQ(text.find("listen_fd"), std::string::npos);
  EXPECT_EQ(text.find("progress_fd"), std::string::npos);
}

// ---- Mistakes ----

struct Mistake {
  const char* name;
  const char* line;      // arguments of `worker`
  const char* sentence;  // its beginning
  friend std::ostream& operator<<(std::ostream& out, const Mistake& m) { return out << m.line; }
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreToldWithFlagValueAndWhatIsAllowed) {
  EXPECT_EQ(refusal("worker " + std::string(GetParam().line)),
            std::string(GetParam().sentence) + " (disttf worker --help-all lists the flags)");
}

constexpr Mistake kMistakes[] = {
    {"UnknownFlag", "--nonsense 3", "\"--nonsense\" is not a flag of disttf worker"},
    {"UnknownFlagWithValue", "--nonsense=3", "\"--nonsense\" is not a flag of disttf worker"},
    {"UnknownShortFlag", "-x 3", "\"-x\" is not a flag of disttf worker"},
    {"FlagOfAnotherCommand", "--restart never", "\"--restart\" is not a flag of disttf worker"},
    {"StrayWord", "extra",
     "\"extra\" is not expected here; values follow their flag, as in --flag value"},
    {"StrayWordBehindAValue", "--batch_size 3 4",
     "\"4\" is not expected here; values follow their flag, as in --flag value"},
    {"NoValueAtTheEnd", "--batch_size",
     "--batch_size: its value is missing; it takes N:1..1048576"},
    {"NoValueBeforeAFlag", "--max_staleness --seed 3",
     "--max_staleness: its value is missing; it takes N"},
    {"NoValueBehindEquals",
     "--ps_hosts=", "--ps_hosts: its value is missing; it takes HOST:PORT,..."},
    {"GivenTwice", "--batch_size 3 --batch-size=4",
     "--batch_size: given twice, with \"3\" and \"4\"; once is allowed"},
    {"GivenTwiceUnderTwoNames", "--task_index 0 --worker_index 1",
     "--worker_index: given twice, with \"0\" and \"1\"; once is allowed"},
    {"TextForAWholeNumber", "--batch_size abc",
     "--batch_size: \"abc\" is not a whole number from 1 to 1048576"},
    {"NegativeNumber", "--batch_size -1",
     "--batch_size: \"-1\" is not a whole number from 1 to 1048576"},
    {"NegativeNumberBehindEquals", "--seed=-1",
     "--seed: \"-1\" is not a whole number of at least 0"},
    {"Zero", "--batch_size 0", "--batch_size: 0 is not from 1 to 1048576"},
    {"HugeNumber", "--batch_size 99999999999999999999",
     "--batch_size: 99999999999999999999 is not from 1 to 1048576"},
    {"Exponent", "--train_steps 1e3", "--train_steps: \"1e3\" is not a whole number of at least 1"},
    {"NoSteps", "--train_steps 0", "--train_steps: 0 is not at least 1"},
    {"HugeSeed", "--seed 9007199254740993",
     "--seed: 9007199254740993 is not from 0 to 9007199254740992"},
    {"TextForARate", "--learning_rate abc", "--learning_rate: \"abc\" is not a number above 0"},
    {"RateThatIsNoNumber", "--learning_rate nan",
     "--learning_rate: \"nan\" is not a number above 0"},
    {"NegativeRate", "--learning_rate -0.1", "--learning_rate: \"-0.1\" is not a number above 0"},
    {"FullMomentum", "--momentum 1", "--momentum: \"1\" is not a number of at least 0 and below 1"},
    {"NoUnits", "--hidden_units 0", "--hidden_units: 0 is not from 1 to 65536"},
    {"AnEmptyLayer", "--hidden_units 100,,100",
     "--hidden_units: \"100,,100\" has an empty entry; entries are separated by one comma"},
    {"TextForUnits", "--hidden_units abc",
     "--hidden_units: \"abc\" is not a whole number from 1 to 65536"},
    {"MaybeBehindAFlag", "--sync_replicas maybe",
     "--sync_replicas: \"maybe\" is not true or false"},
    {"MaybeBehindEquals", "--sync_replicas=maybe",
     "--sync_replicas: \"maybe\" is not true or false"},
    {"NothingBehindAFlagsEquals",
     "--sync_replicas=", "--sync_replicas: the value after = is missing; true or false"},
    {"AProgramWithoutItsDashes", "--program python3 x.py",
     "--program: \"python3\" is not true or false; the program itself comes after --: --program "
     "-- COMMAND"},
    {"UnknownLogLevel", "--log_level foo",
     "--log_level: \"foo\" is not debug, info, warning, error or off"},
    {"UnknownLogFormat", "--log_format xml", "--log_format: \"xml\" is not text or json"},
    {"UnknownModel", "--model transformer",
     "--model: \"transformer\" is not softmax, mlp, lenet, cnn, or a model file, which ends in "
     ".toml"},
    {"UnknownOptimizer", "--optimizer lbfgs",
     "--optimizer: \"lbfgs\" is not sgd, momentum, adagrad, adam or adamw"},
    {"UnknownDecay", "--learning_rate_decay polynomial",
     "--learning_rate_decay: \"polynomial\" is not linear, none, cosine or one_cycle"},
    {"UnknownDataset", "--dataset fashion",
     "--dataset: \"fashion\" is not auto, mnist, digits, fashion_mnist, kmnist, qmnist, "
     "emnist_byclass, emnist_bymerge, emnist_balanced, emnist_letters, emnist_digits, "
     "emnist_mnist or cifar10"},
    {"NoTime", "--start_timeout 0", "--start_timeout: 0 is not from 1 to 86400"},
    {"TextForATime", "--peer_timeout soon",
     "--peer_timeout: \"soon\" is not a whole number from 1 to 86400"},
    {"SilenceNoLongerThanAHeartbeat", "--heartbeat_timeout 1",
     "--heartbeat_timeout: 1 is not from 2 to 86400"},
    {"NegativeIndex", "--task_index -1",
     "--task_index: \"-1\" is not a whole number from 0 to 9999"},
    {"TextForAnIndex", "--task_index one",
     "--task_index: \"one\" is not a whole number from 0 to 9999"},
    {"UrlWithoutScheme", "--data_url mirror/mnist",
     "--data_url: \"mirror/mnist\" does not begin with http:// or https://"},
    {"MissingConfigFile", "--config /no/such/file.toml",
     "--config: \"/no/such/file.toml\" is not a file that can be read: No such file or directory"},
    {"DirectoryAsConfigFile", "--config /",
     "--config: \"/\" is not a file that can be read: Is a directory"},
    {"DeviceAsConfigFile", "--config /dev/null",
     "--config: \"/dev/null\" is not a file that can be read: it is a pipe or a device, but launch "
     "reads the file more than once"},
};

INSTANTIATE_TEST_SUITE_P(ParseFlags, Mistakes, testing::ValuesIn(kMistakes),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(ParseFlags, NamesTheValuesOfEveryBooleanFlag) {
  for (const CommandRow& row : commands()) {
    const CommandApp all(row);
    for (const CLI::Option* option : all.get_options()) {
      const std::string name = option->get_name();
      if (option->get_expected_max() != 0 || name.starts_with("--help")) {
        continue;
      }
      CommandApp app(row);
      const std::vector<std::string> line = {name + "=maybe"};
      EXPECT_EQ(sentence_of([&] { return parse_flags(app, line); }),
                name + ": \"maybe\" is not true or false" + flags_hint(app))
          << row.name << " " << name;
    }
  }
}

// ---- --config ----

class ConfigFile : public testing::Test {
 protected:
  ~ConfigFile() override { std::filesystem::remove(path_); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  [[nodiscard]] TaskFlags flags_with(const std::string& line) const {
    return flags_of("--config " + path_ + " " + line);
  }
  [[nodiscard]] std::string refused() const { return refusal("worker --config " + path_); }

  const std::string path_ = testing::TempDir() + "disttf_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
};

TEST_F(ConfigFile, HasTextsWithATildeAndBeyondAscii) {
  const auto log_dir = [this](const std::string& text) {
    write("log_dir = " + text + "\n");
    return flags_with("").run.output.log_dir;
  };
  EXPECT_EQ(log_dir(R"("~41")"), "~41");
  EXPECT_EQ(log_dir(R"("\u007E41\u007e7E\U0000007E41")"), "~41~7E~41");
  EXPECT_EQ(log_dir(R"("\\u007E41\\\u007E")"), R"(\u007E41\~)");
  EXPECT_EQ(log_dir("\"\u00e9\\u00E9\""), "\u00e9\u00e9");
}

TEST_F(ConfigFile, GivesFlagsTheirValues) {
  write(
      "# a comment\n"
      "batch_size = 50\n"
      "learning_rate = 0.25\n"
      "optimizer = \"sgd\"\n"
      "hidden_units = [128, 64]\n"
      "data_url = [\"http://a/\", \"http://b/\"]\n"
      "sync_replicas = false\n"
      "print_weights_hash = true\n");
  const TaskFlags flags = flags_with("");
  EXPECT_EQ(flags.run.training.settings.run.batch_size, 50U);
  EXPECT_EQ(flags.run.training.settings.run.optimizer.learning_rate, 0.25F);
  EXPECT_EQ(flags.run.training.settings.run.optimizer.kind, math::OptimizerKind::kSgd);
  EXPECT_THAT(flags.run.training.settings.run.model.hidden, ElementsAre(128, 64));
  EXPECT_THAT(flags.run.data.data_url, ElementsAre("http://a/", "http://b/"));
  EXPECT_FALSE(flags.run.training.settings.run.sync_replicas);
  EXPECT_TRUE(flags.run.output.print_weights_hash);
}

TEST_F(ConfigFile, YieldsToTheCommandLine) {
  write("batch_size = 50\ntrain_steps = 7\nhidden_units = [1, 2]\n");
  const TaskFlags flags = flags_with("--batch_size 60 --hidden_units 3");
  EXPECT_EQ(flags.run.training.settings.run.batch_size, 60U);
  EXPECT_EQ(flags.run.training.settings.run.train_steps, 7U);
  EXPECT_THAT(flags.run.training.settings.run.model.hidden, ElementsAre(3));
}

TEST_F(ConfigFile, TakesPythonsBooleans) {
  write("sync_replicas = False\nprint_weights_hash = True\n");
  EXPECT_FALSE(flags_with("").run.training.settings.run.sync_replicas);
  EXPECT_TRUE(flags_with("").run.output.print_weights_hash);
}

TEST_F(ConfigFile, MayBeginWithAByteOrderMarkAndHaveHyphensAndCrLf) {
  write("\xEF\xBB\xBF# from Windows\r\ntrain-steps = 5\r\n\"batch_size\" = 6\r\n");
  EXPECT_EQ(flags_with("").run.training.settings.run.train_steps, 5U);
  EXPECT_EQ(flags_with("").run.training.settings.run.batch_size, 6U);
}

TEST_F(ConfigFile, TakesEveryFormOfANumberThatTomlHas) {
  for (const char* five_hundred :
       {"500", "+500", "5_00", "0x1F4", "0x01_f4", "0o764", "0b1_1111_0100"}) {
    write(std::string("train_steps = ") + five_hundred + "\n");
    EXPECT_EQ(flags_with("").run.training.settings.run.train_steps, 500U) << five_hundred;
  }
  for (const char* quarter : {"0.25", "+0.25", "2.5e-1", "2.5E-1", "0.2_5", "25.0e-2"}) {
    write(std::string("learning_rate = ") + quarter + "  # a comment\n");
    EXPECT_EQ(flags_with("").run.training.settings.run.optimizer.learning_rate, 0.25F) << quarter;
  }
  write("seed = 18446744073709551615\n");  // exceeds TOML's integers
  EXPECT_THAT(refused(), StartsWith("--seed: 18446744073709551615 is not from 0 to "));
}

TEST_F(ConfigFile, RoundsANumberOnce) {
  // Just above the middle of two floats, and exactly the middle once it is rounded to a double.
  write("learning_rate = 1.00000005960464477539062500001\n");
  EXPECT_EQ(flags_with("").run.training.settings.run.optimizer.learning_rate, 1.00000012F);
}

TEST_F(ConfigFile, TakesEveryFormOfATextThatTomlHas) {
  for (const char* text :
       {R"("a # b, c")", R"('a # b, c')", R"("""a # b, c""")", R"("\u0061 # b, c")"}) {
    write(std::string("data_dir = ") + text + " # a comment\n");
    EXPECT_EQ(flags_with("").run.data.data_dir, "a # b, c") << text;
  }
  write("data_dir = \"/srv/Z\u00fcrich~1\"\n");
  EXPECT_EQ(flags_with("").run.data.data_dir, "/srv/Z\u00fcrich~1");
  write("hidden_units = [\n  128,  # first\n  0x40,\n]\n");
  EXPECT_THAT(flags_with("").run.training.settings.run.model.hidden, ElementsAre(128, 64));
}

TEST_F(ConfigFile, MayLackQuotes) {
  write("optimizer = sgd # a comment\nhidden_units = 128,64\ndata_dir = ./a b\n");
  EXPECT_EQ(flags_with("").run.training.settings.run.optimizer.kind, math::OptimizerKind::kSgd);
  EXPECT_THAT(flags_with("").run.training.settings.run.model.hidden, ElementsAre(128, 64));
  EXPECT_EQ(flags_with("").run.data.data_dir, "./a b");
}

struct WrongFile {
  const char* text;
  const char* sentence;  // after "--config: FILE, "
};

TEST_F(ConfigFile, ThatIsWrongIsOneSentenceWithTheLine) {
  const std::vector<WrongFile> files = {
      {"train_steps = 5\ntrain_steps = 6\n",
       "line 2: \"train_steps\" is given twice; once is allowed"},
      {"train_steps = 5\n\ntrain-steps = 6\n",
       "line 3: \"train-steps\" is \"train_steps\" once more; once is allowed"},
      {"# a\ntrain_steps 5\n",
       "line 2: \"train_steps 5\" is not TOML, which has key = value in each "
       "line and texts in quotes (expected '=', saw '5')"},
      {"optimizer = \"sgd\n",
       "line 1: \"optimizer = \\\"sgd\" has no closing quote on its line, or a control character "
       "in "
       "the text"},
      {"train_steps =\n", "line 1: \"train_steps =\" has no value behind the ="},
      {"hidden_units = [1,\n2\n", "line 2: the array has no closing ]"},
      {"train_steps = [5, 6]\n", "line 1: train_steps takes one value, not an array"},
      {"hidden_units = []\n",
       "line 1: hidden_units: the array is empty; it needs at least one value"},
      {"seed = 1979-05-27\n", "line 1: seed is a table, a date or an array within an array"},
      {"seed = { a = 1 }\n", "line 1: seed is a table, a date or an array within an array"},
      {"train_steps = 5\rseed = 2\r",
       "line 1: lines end with CR alone; save the file with LF or CRLF line ends"},
  };
  for (const WrongFile& file : files) {
    write(file.text);
    EXPECT_THAT(refused(), StartsWith("--config: " + path_ + ", " + file.sentence));
  }
  write(std::string("\xFF\xFEt\0r\0", 6));
  EXPECT_EQ(refused(), "--config: " + path_ + ", line 1: the file is UTF-16; save it as UTF-8");
  write(std::string("seed = 1\nseed\0", 14));
  EXPECT_EQ(refused(),
            "--config: " + path_ + ", line 2: a zero byte; a text file in UTF-8 has none");
}

TEST_F(ConfigFile, MayBeEmpty) {
  write("");
  EXPECT_EQ(flags_with("").run.training.settings.run.batch_size, 100U);
}

TEST_F(ConfigFile, WithAnUnknownKeyIsRefused) {
  write("batch_siz = 50\n");
  EXPECT_THAT(
      refused(),
      StartsWith("--config: \"batch_siz\" is not a flag of disttf worker, so not a key of " +
                 path_ + ", line 1 (disttf worker --help-all lists the flags)"));
}

TEST_F(ConfigFile, WithASectionIsRefused) {
  write("[training]\nbatch_size = 50\n");
  EXPECT_THAT(refused(), HasSubstr("--config: \"training\" is not a flag of disttf worker"));
}

TEST_F(ConfigFile, ValuesAreCheckedAsOnTheCommandLine) {
  write("batch_size = -1\n");
  EXPECT_THAT(refused(), HasSubstr("--batch_size: \"-1\" is not a whole number from 1 to 1048576"));
  write("sync_replicas = \"maybe\"\n");
  EXPECT_THAT(refused(), HasSubstr("--sync_replicas"));
  write("hidden_units = [100, 0]\n");
  EXPECT_THAT(refused(), HasSubstr("--hidden_units: 0 is not from 1 to 65536"));
}

}  // namespace
}  // namespace disttf
