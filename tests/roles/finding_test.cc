// What a doctor says, and what it reads of control groups.
#include "roles/doctor/core/finding.h"

#include <gtest/gtest.h>

#include <vector>

namespace disttf::roles {
namespace {

using Grade = Finding::Grade;

const std::vector<Finding> kFindings = {{"kernel", Grade::kGood, "Linux"},
                                        {"shared_memory", Grade::kLacking, "none"},
                                        {"port", Grade::kBad, "22 is \"taken\"", kCannotListen}};

TEST(Finding, IsALineWithTheTextsInOneColumn) {
  EXPECT_EQ(to_text(kFindings),
            "kernel         good     Linux\n"
            "shared_memory  lacking  none\n"
            "port           bad      22 is \"taken\"");
}

TEST(Finding, IsJson) {
  EXPECT_EQ(
      to_json(std::span(kFindings).last(1)),
      R"({"well":false,"findings":[{"subject":"port","grade":"bad","text":"22 is \"taken\""}]})");
  EXPECT_EQ(to_json(std::span<const Finding>()), R"({"well":true,"findings":[]})");
}

TEST(Finding, OnlyWhatIsBadCountsForTheExitCode) {
  EXPECT_EQ(exit_code_of(std::span(kFindings).first(2)), kDone);
  EXPECT_EQ(exit_code_of(kFindings), kCannotListen);
}

TEST(ControlGroup, LimitsOfMemory) {
  EXPECT_EQ(memory_limit("536870912\n"), 536'870'912U);
  EXPECT_EQ(memory_limit("max\n"), std::nullopt);
  EXPECT_EQ(memory_limit(""), std::nullopt);
  EXPECT_EQ(memory_limit("12x"), std::nullopt);
  EXPECT_EQ(memory_limit("99999999999999999999"), std::nullopt);
}

TEST(ControlGroup, LimitsOfProcessors) {
  EXPECT_EQ(processor_limit("150000 100000\n"), 1.5);
  EXPECT_EQ(processor_limit("max 100000\n"), std::nullopt);
  EXPECT_EQ(processor_limit("150000\n"), std::nullopt);
  EXPECT_EQ(processor_limit("150000"), std::nullopt);
  EXPECT_EQ(processor_limit("150000 0\n"), std::nullopt);
  EXPECT_EQ(processor_limit(""), std::nullopt);
}

TEST(ControlGroup, IsThatOfTheSecondHierarchy) {
  EXPECT_EQ(group_path("0::/user.slice/a\n"), "/user.slice/a");
  EXPECT_EQ(group_path("12:memory:/a\n1:name=systemd:/b\n0::/c\n"), "/c");
  EXPECT_EQ(group_path("12:memory:/a\n"), std::nullopt);
  EXPECT_EQ(group_path(""), std::nullopt);
}

}  // namespace
}  // namespace disttf::roles
