// What a doctor says.
#include "main/doctor/finding.h"

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

}  // namespace
}  // namespace disttf::roles
