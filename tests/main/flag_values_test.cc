#include "main/flag_values.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "main/parse_flags.h"
#include "run/run_config.h"

namespace disttf {
namespace {

// Returns the error for `text`, "" if it is valid.
std::string fault(const CLI::Validator& check, std::string text) { return check(text); }

// Returns `text` as the check transforms it.
std::string transformed(const CLI::Validator& check, std::string text) {
  EXPECT_EQ(check(text), "");
  return text;
}

TEST(WholeNumber, AcceptsItsBounds) {
  EXPECT_EQ(fault(whole_number(1, 10), "1"), "");
  EXPECT_EQ(fault(whole_number(1, 10), "10"), "");
}

TEST(WholeNumber, RefusesWhatIsBeyondThem) {
  EXPECT_EQ(fault(whole_number(1, 10), "0"), "0 is not from 1 to 10");
  EXPECT_EQ(fault(whole_number(1, 10), "11"), "11 is not from 1 to 10");
  EXPECT_EQ(fault(whole_number(1, 10), "18446744073709551617"),
            "18446744073709551617 is not from 1 to 10");
}

TEST(WholeNumber, RefusesWhatIsNoWholeNumber) {
  for (const std::string text :
       {"", " ", "abc", "-1", "+1", "1.5", "1e3", "0x10", "1 ", " 1", "1,2", "one"}) {
    EXPECT_EQ(fault(whole_number(1, 10), text),
              "\"" + text + "\" is not a whole number from 1 to 10");
  }
}

TEST(WholeNumber, ShowsUnprintableBytes) {
  EXPECT_EQ(fault(whole_number(1, 10), "\xff\n"),
            "\"\\xff\\n\" is not a whole number from 1 to 10");
}

TEST(WholeNumber, OmitsABoundThatIsNeverReached) {
  const CLI::Validator check = whole_number(1, roles::kMaxCount);
  EXPECT_EQ(fault(check, "x"), "\"x\" is not a whole number of at least 1");
  EXPECT_EQ(fault(check, "0"), "0 is not at least 1");
  EXPECT_EQ(fault(check, "9007199254740993"), "9007199254740993 is not from 1 to 9007199254740992");
}

// CLI11 would read 010 as the octal number 8.
TEST(WholeNumber, ReadsLeadingZerosAsDecimal) {
  EXPECT_EQ(transformed(whole_number(0, 100), "010"), "10");
  EXPECT_EQ(transformed(whole_number(0, 100), "000"), "0");
}

TEST(NumberAboveZero, AcceptsDecimalNumbers) {
  for (const char* text : {"1", "0.1", ".5", "5.", "1e-3", "1E5", "3e38"}) {
    EXPECT_EQ(fault(number_above_zero(), text), "") << text;
  }
}

TEST(NumberAboveZero, RefusesEverythingElse) {
  for (const std::string text :
       {"", "abc", "0", "-1", "-0", "nan", "inf", "1e39", "1e-60", "0x1p3", "1,5", "1 ", "1f"}) {
    EXPECT_EQ(fault(number_above_zero(), text), "\"" + text + "\" is not a number above 0");
  }
}

TEST(NumberFromZero, AcceptsZeroButNothingBelow) {
  EXPECT_EQ(fault(number_from_zero(), "0"), "");
  EXPECT_EQ(fault(number_from_zero(), "1e3"), "");
  for (const std::string text : {"-0.1", "x", "nan", "inf", ""}) {
    EXPECT_EQ(fault(number_from_zero(), text), "\"" + text + "\" is not a number of at least 0");
  }
}

TEST(FractionBelowOne, AcceptsZeroButNotOne) {
  EXPECT_EQ(fault(fraction_below_one(), "0"), "");
  EXPECT_EQ(fault(fraction_below_one(), "0.999"), "");
  for (const std::string text : {"1", "-0.1", "x", "nan", ""}) {
    EXPECT_EQ(fault(fraction_below_one(), text),
              "\"" + text + "\" is not a number of at least 0 and below 1");
  }
}

TEST(OneOf, NamesAllThatIsAllowed) {
  EXPECT_EQ(fault(one_of({"a", "b", "c"}), "b"), "");
  EXPECT_EQ(fault(one_of({"a", "b", "c"}), "d"), "\"d\" is not a, b or c");
  EXPECT_EQ(fault(one_of({"a", "b"}), "A"), "\"A\" is not a or b");
}

TEST(Boolean, TakesAnyLetterCase) {
  EXPECT_EQ(transformed(boolean(), "True"), "true");
  EXPECT_EQ(transformed(boolean(), "FALSE"), "false");
  EXPECT_EQ(fault(boolean(), "maybe"), "\"maybe\" is not true or false");
}

TEST(UrlCheck, WantsHttpAndAHost) {
  EXPECT_EQ(fault(url(), "https://host/mnist"), "");
  EXPECT_EQ(fault(url(), "ftp://host/"), "\"ftp://host/\" does not begin with http:// or https://");
}

TEST(CommaListOf, ChecksEveryEntry) {
  const CLI::Validator check = comma_list_of(whole_number(1, 10));
  EXPECT_EQ(fault(check, "1,2,10"), "");
  EXPECT_EQ(fault(check, "1,abc"), "\"abc\" is not a whole number from 1 to 10");
  EXPECT_EQ(fault(check, "1,11"), "11 is not from 1 to 10");
}

TEST(CommaListOf, RefusesEmptyEntries) {
  for (const std::string text : {"1,,2", ",1", "1,", ",", ""}) {
    EXPECT_EQ(fault(comma_list_of(whole_number(1, 10)), text),
              "\"" + text + "\" has an empty entry; entries are separated by one comma");
  }
}

TEST(SeedAndRate, TakesTwoWholeNumbers) {
  EXPECT_EQ(fault(seed_and_rate(), "7,0"), "");
  EXPECT_EQ(fault(seed_and_rate(), "0,1000"), "");
}

TEST(SeedAndRate, AreReadAsTheyAre) {
  const roles::ChaosOptions read = read_seed_and_rate("7,20");
  EXPECT_EQ(read.seed, 7U);
  EXPECT_EQ(read.per_1000, 20U);
}

TEST(SeedAndRate, RefusesEverythingElse) {
  for (const std::string text : {"", "7", "7,", ",7", "7,1001", "7,-1", "x,7", "7,20,1", "7 20"}) {
    EXPECT_EQ(fault(seed_and_rate(), text),
              "\"" + text + "\" is not SEED,RATE: two whole numbers, RATE from 0 to 1000");
  }
}

TEST(Attempts, AreReadAtCommas) {
  EXPECT_EQ(fault(attempts(), "open:/a:b,connect:127.0.0.1:80,exec:/bin/true"), "");
  const std::vector<roles::Attempt> read = read_attempts("open:/a:b,exec:/bin/true");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].kind, roles::Attempt::Kind::kOpen);
  EXPECT_EQ(read[0].what, "/a:b");
  EXPECT_EQ(read[1].kind, roles::Attempt::Kind::kExec);
  EXPECT_EQ(read[1].what, "/bin/true");
  EXPECT_TRUE(read_attempts("").empty());
}

TEST(Attempts, RefuseEverythingElse) {
  for (const std::string text : {"open", "open:", "write:/a", "connect:127.0.0.1", "connect:x:80",
                                 "connect:127.0.0.1:65536", "connect:127.0.0.1:", "exec:", ":/a"}) {
    EXPECT_EQ(
        fault(attempts(), text),
        "\"" + text + "\" is not one of open:FILE, connect:ADDRESS:PORT (IPv4), exec:PROGRAM");
  }
}

TEST(Compression, IsNoneOrAShareOfComponents) {
  for (const std::string text : {"none", "topk:0.01", "topk:0.999"}) {
    EXPECT_EQ(fault(compression(), text), "");
  }
  for (const std::string text : {"", "topk", "topk:0", "topk:1", "topk:x", "0.01"}) {
    EXPECT_EQ(fault(compression(), text),
              "\"" + text + "\" is not none or topk:SHARE with a share above 0 and below 1");
  }
}

TEST(SplitAtCommas, KeepsEveryEntryInOrder) {
  EXPECT_EQ(split_at_commas({"1,2", "3"}), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(split_at_commas({"a,,b"}), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split_at_commas({}), std::vector<std::string>{});
}

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
