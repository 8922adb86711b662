#include "main/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "main/commands/registry.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// Returns the words offered after `line`, whose last word is being typed; a line that ends with a
// space has an empty last word.
std::vector<std::string> offered(const std::string& line, const RunningTasks& tasks = {}) {
  std::vector<std::string> typed = words(line);
  if (line.empty() || line.ends_with(' ')) {
    typed.emplace_back();
  }
  std::istringstream lines(complete_words(typed, tasks));
  std::vector<std::string> found;
  for (std::string each; std::getline(lines, each);) {
    found.push_back(each.substr(0, each.find('\t')));
  }
  return found;
}

TEST(Completion, OffersCommands) {
  EXPECT_THAT(offered(""), IsSupersetOf({"launch", "ps", "completion"}));
  EXPECT_EQ(offered("").size(), commands().size() + 1);  // help
  EXPECT_THAT(offered("help lau"), ElementsAre("launch"));
  EXPECT_THAT(offered("help launch "), ElementsAre());
  EXPECT_THAT(offered("lau"), ElementsAre("launch"));
  EXPECT_THAT(offered("nothing"), ElementsAre());
  EXPECT_THAT(complete_words({}), HasSubstr("\nlaunch\tTrain on this machine"));
}

TEST(Completion, OffersTheFlagsOfTheCommand) {
  EXPECT_THAT(offered("launch --print_w"), ElementsAre("--print_weights_hash"));
  EXPECT_THAT(offered("launch --restart never --max_r"), ElementsAre("--max_restarts"));
  EXPECT_THAT(offered("download --batch"), ElementsAre());
  EXPECT_THAT(offered("--task_i"), ElementsAre("--task_index"));  // a flag of train
  EXPECT_THAT(offered("launch --listen"), ElementsAre());         // hidden
  EXPECT_THAT(complete_words(words("launch --print_w")),
              HasSubstr("\tPrint the SHA-256 of the final weights\n"));
}

TEST(Completion, OffersWhatAFlagMayBe) {
  EXPECT_THAT(offered("launch --log_format "), ElementsAre("text", "json"));
  EXPECT_THAT(offered("launch --log-format j"), ElementsAre("json"));
  EXPECT_THAT(offered("launch --log_format=j"), ElementsAre("json"));
  EXPECT_THAT(offered("launch --isa a"), ElementsAre("auto", "avx2", "avx512"));
  EXPECT_THAT(offered("launch --print_weights_hash=t"), ElementsAre("true"));
  EXPECT_THAT(offered("launch --workers "), ElementsAre());
}

TEST(Completion, OffersPaths) {
  EXPECT_THAT(offered("launch --metrics_file "), ElementsAre(":path"));
  EXPECT_THAT(offered("launch --train_dir=r"), ElementsAre(":directory"));
  EXPECT_THAT(offered("launch --model ml"), ElementsAre("mlp", ":path"));
  EXPECT_THAT(offered("launch -w 2 -- pyth"), ElementsAre(":path"));
}

TEST(Completion, OffersTheWordsOfACommand) {
  EXPECT_THAT(offered("checkpoint "), ElementsAre("ls", "verify", "show"));
  EXPECT_THAT(offered("checkpoint ls "), ElementsAre(":directory"));
  EXPECT_THAT(offered("render kub"), ElementsAre("kubernetes"));
  EXPECT_THAT(offered("resolve --json w"), ElementsAre("worker"));
  EXPECT_THAT(offered("pods re"), ElementsAre("restart", "replace"));
  EXPECT_THAT(offered("predict run a.png "), ElementsAre(":path"));
  EXPECT_THAT(offered("model show le"), ElementsAre("lenet", ":path"));
  EXPECT_THAT(offered("completion "), ElementsAre("bash", "zsh", "fish"));
}

TEST(Completion, OffersTheTasksOfRunningLaunches) {
  const auto tasks = [](const std::string& socket) -> std::vector<std::string> {
    if (socket == "/run/b.sock") return {"worker:7"};
    return {"ps:0", "worker:0", "worker:1"};
  };
  EXPECT_THAT(offered("logs ", tasks), ElementsAre("ps-0", "worker-0", "worker-1"));
  EXPECT_THAT(offered("logs -f w", tasks), ElementsAre("worker-0", "worker-1"));
  EXPECT_THAT(offered("logs worker:", tasks), ElementsAre("worker:0", "worker:1"));
  EXPECT_THAT(offered("logs --control /run/b.sock ", tasks), ElementsAre("worker-7"));
  EXPECT_THAT(offered("pods restart --control=/run/b.sock ", tasks), ElementsAre("worker-7"));
  EXPECT_THAT(offered("pods restart p", tasks), ElementsAre("ps-0"));
  EXPECT_THAT(offered("pods replace worker-1", tasks), ElementsAre("worker-1"));
  EXPECT_THAT(offered("pods list ", tasks), ElementsAre());
  EXPECT_THAT(offered("logs worker-0 ", tasks), ElementsAre());
  EXPECT_THAT(offered("status ", tasks), ElementsAre());
  EXPECT_THAT(offered("logs "), ElementsAre());
}

TEST(Completion, OfAnUnknownCommandIsRefused) {
  EXPECT_THROW(static_cast<void>(complete_words(words("dance --x"))), std::invalid_argument);
}

// Every offered flag is accepted: each command's --help works with each of its flags' names.
TEST(Completion, OffersOnlyFlagsThatTheCommandHas) {
  for (const CommandRow& row : commands()) {
    const CommandApp app(row);
    const std::vector<std::string> names = offered(std::string(row.name) + " --");
    EXPECT_THAT(names, ::testing::Contains("--log_level")) << row.name;
    for (const std::string& name : names) {
      EXPECT_NE(app.get_option_no_throw(name), nullptr) << row.name << " " << name;
    }
  }
}

TEST(Completion, ScriptOfAShellIsPrinted) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Print print = action_of<Print>(std::string("completion ") + shell);
    EXPECT_THAT(print.text, HasSubstr("__complete"));
    EXPECT_EQ(print.exit_code, 0);
  }
  EXPECT_THAT(action_of<Print>("__complete lau").text, HasSubstr("launch\t"));
}

TEST(Completion, OtherShellsAreRefused) {
  const auto refusal = [](const std::string& line) -> std::string {
    try {
      static_cast<void>(parse(line));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_EQ(refusal("completion"), "completion: the shell is missing; bash, zsh or fish");
  EXPECT_EQ(refusal("completion tcsh"),
            "completion: \"tcsh\" is not bash, zsh or fish (see disttf completion --help)");
}

}  // namespace
}  // namespace disttf
