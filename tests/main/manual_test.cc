#include "main/manual/manual.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "main/commands/registry.h"
#include "main/completion.h"
#include "main/environment.h"
#include "main/flags/flag_group.h"
#include "tests/main/command_lines.h"
#include "tests/support/thrown.h"

namespace disttf {
namespace {

using ::testing::HasSubstr;

TEST(Manual, HasAPageForEachCommand) {
  const std::vector<ManualPage> pages = manual_pages("1.2.3", "2026-11-25");
  ASSERT_EQ(pages.size(), commands().size() + 1);
  EXPECT_EQ(pages.front().name, "disttf.1");
  for (std::size_t each = 0; each < commands().size(); ++each) {
    EXPECT_EQ(pages[each + 1].name, std::string("disttf-") + commands()[each].name + ".1");
  }
}

TEST(Manual, PagesHaveTheirSectionsInOrder) {
  for (const ManualPage& page : manual_pages("1.2.3", "2026-11-25")) {
    std::size_t at = 0;
    for (const char* const section :
         {".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH OPTIONS\n", ".SH EXIT STATUS\n",
          ".SH ENVIRONMENT\n", ".SH FILES\n", ".SH EXAMPLES\n", ".SH SEE ALSO\n"}) {
      at = page.text.find(section, at);
      ASSERT_NE(at, std::string::npos) << page.name << ": " << section;
    }
    EXPECT_THAT(page.text, HasSubstr("\"2026-11-25\" \"disttf 1.2.3\""));
  }
}

TEST(Manual, PageNamesEachFlagThatTheHelpShows) {
  for (const CommandRow& row : commands()) {
    const CommandApp app(row);
    const std::vector<ManualPage> pages = manual_pages("1.2.3", "2026-11-25");
    const auto page =
        std::ranges::find(pages, std::string("disttf-") + row.name + ".1", &ManualPage::name);
    for (const CLI::Option* option : app.get_options()) {
      if (!option->get_lnames().empty() && option->get_group() != kHiddenGroup) {
        EXPECT_THAT(page->text, HasSubstr(manual_text("--" + option->get_lnames().front())));
      }
    }
    EXPECT_THAT(page->text, ::testing::Not(HasSubstr("listen_fd")));  // hidden
  }
}

TEST(Manual, TellsOfEachVariableThatIsRead) {
  std::set<std::string> told;
  for (const VariableText& each : variable_texts()) {
    std::string names(each.names);
    std::ranges::replace(names, ',', ' ');
    std::istringstream in(names);
    for (std::string name; in >> name;) {
      EXPECT_TRUE(told.insert(name).second) << name;
    }
  }
  const auto names = environment_names();
  EXPECT_EQ(told, std::set<std::string>(names.begin(), names.end()));
}

TEST(Manual, TellsWhatAValueIsAndWhatIsAllowed) {
  std::string worker;
  for (const ManualPage& page : manual_pages("1.2.3", "2026-11-25")) {
    worker = page.name == "disttf-worker.1" ? page.text : worker;
  }
  EXPECT_THAT(worker, HasSubstr("\\fB\\-\\-port_base\\fR \\fIPORT\\fR\n"));
  EXPECT_THAT(worker, HasSubstr("\nFrom 1 to 65535.\nDefault: 2222.\n"));
  EXPECT_THAT(worker, HasSubstr("\\fB\\-\\-ps_hosts\\fR \\fIHOST:PORT,...\\fR\n"));
  EXPECT_THAT(worker, HasSubstr("\nOne of text, json.\nDefault: text.\n"));
}

TEST(Manual, TextIsEscaped) {
  EXPECT_EQ(manual_text("a-b \\ \"c\""), "a\\-b \\e \\(dqc\\(dq");
  EXPECT_EQ(manual_text(".x\n'y"), "\\&.x\n\\&'y");
}

using ::testing::ElementsAre;
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
  const auto refusal = [](const std::string& line) {
    return sentence_of([&] { return parse(line); }, "taken");
  };
  EXPECT_EQ(refusal("completion"), "completion: the shell is missing; bash, zsh or fish");
  EXPECT_EQ(refusal("completion tcsh"),
            "completion: \"tcsh\" is not bash, zsh or fish (see disttf completion --help)");
}

}  // namespace
}  // namespace disttf
