#include "main/arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace disttf {
namespace {

using Words = std::vector<std::string>;

// --flag is a boolean; every other flag takes a value.
Words normalized(const Words& arguments) {
  return normalize_arguments(arguments, [](std::string_view name) { return name == "--the_flag"; });
}

TEST(NormalizeArguments, WritesUnderscoresForHyphensInNames) {
  EXPECT_EQ(normalized({"--task-index=1", "--ps-hosts", "a-b:1"}),
            (Words{"--task_index=1", "--ps_hosts", "a-b:1"}));
}

TEST(NormalizeArguments, LeavesHyphensInValuesAlone) {
  EXPECT_EQ(normalized({"--data-dir=my-data--dir"}), (Words{"--data_dir=my-data--dir"}));
}

TEST(NormalizeArguments, LeavesEveryOtherWordAlone) {
  const Words others = {"worker", "-s", "2", "a-b", "-", "", "-x-y"};
  EXPECT_EQ(normalized(others), others);
}

TEST(NormalizeArguments, SurvivesAWordOfHyphensOnly) { EXPECT_EQ(normalized({"--"}), Words{"--"}); }

TEST(NormalizeArguments, JoinsAFlagWithTheBooleanBehindIt) {
  EXPECT_EQ(normalized({"--the_flag", "True", "--x"}), (Words{"--the_flag=true", "--x"}));
  EXPECT_EQ(normalized({"--the-flag", "false"}), Words{"--the_flag=false"});
}

TEST(NormalizeArguments, KnowsTheSpellingsOfBooleans) {
  for (const char* yes : {"true", "True", "TRUE", "1", "yes", "on"}) {
    EXPECT_EQ(normalized({"--the_flag", yes}), Words{"--the_flag=true"}) << yes;
    EXPECT_EQ(normalized({std::string("--the_flag=") + yes}), Words{"--the_flag=true"}) << yes;
  }
  for (const char* no : {"false", "False", "FALSE", "0", "no", "Off"}) {
    EXPECT_EQ(normalized({"--the_flag", no}), Words{"--the_flag=false"}) << no;
    EXPECT_EQ(normalized({std::string("--the_flag=") + no}), Words{"--the_flag=false"}) << no;
  }
}

TEST(NormalizeArguments, LeavesAnotherWordBehindAFlagWhereItIs) {
  EXPECT_EQ(normalized({"--the_flag", "maybe"}), (Words{"--the_flag", "maybe"}));
  EXPECT_EQ(normalized({"--the_flag=maybe"}), Words{"--the_flag=maybe"});
  EXPECT_EQ(normalized({"--the_flag", "--x", "true"}), (Words{"--the_flag", "--x", "true"}));
}

TEST(NormalizeArguments, LeavesABareFlagBare) {
  EXPECT_EQ(normalized({"--the_flag"}), Words{"--the_flag"});
  EXPECT_EQ(normalized({"--the_flag="}), Words{"--the_flag="});
}

TEST(NormalizeArguments, LeavesValuesThatLookLikeBooleansAlone) {
  EXPECT_EQ(normalized({"--steps", "1", "--name", "True", "--dir=False"}),
            (Words{"--steps", "1", "--name", "True", "--dir=False"}));
}

}  // namespace
}  // namespace disttf
