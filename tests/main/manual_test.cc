#include "main/manual/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "main/commands/registry.h"
#include "main/environment.h"
#include "main/flags/group_names.h"

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

}  // namespace
}  // namespace disttf
