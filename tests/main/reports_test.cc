// What a doctor says.
#include <gtest/gtest.h>

#include <vector>

#include "main/doctor/doctor.h"
#include "main/verify/verify_report.h"

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

// What `disttf verify` prints of its checks.

using Result = VerifyCheck::Result;

VerifyReport two_checks(Result second) {
  return {.client = "python 1.0",
          .fingerprint = {{"threads", "1"}, {"torch", "2.9"}},
          .variables = 1,
          .parameters = 12,
          .checks = {{"steps", Result::kOk, "finite"}, {"end", second, "late"}}};
}

TEST(VerifyReport, IsOkOnlyIfAllChecksAre) {
  EXPECT_TRUE(two_checks(Result::kOk).is_ok());
  EXPECT_FALSE(two_checks(Result::kFailed).is_ok());
  EXPECT_FALSE(two_checks(Result::kLeftOut).is_ok());
}

TEST(VerifyReport, SaysTheResultFirst) {
  EXPECT_EQ(to_text({"steps", Result::kOk, "finite"}), "ok: steps: finite");
  EXPECT_EQ(to_text({"end", Result::kFailed, "a\nb"}), "FAILED: end: a b");
  EXPECT_EQ(to_text({"end", Result::kLeftOut, "why"}), "left out: end: why");
}

TEST(VerifyReport, NamesTheClientAndItsFingerprint) {
  EXPECT_EQ(facts_text(two_checks(Result::kOk)),
            "1 variable, 12 parameters, client python 1.0, fingerprint threads 1, torch 2.9");
  VerifyReport report;
  report.variables = 2;
  report.parameters = 1;
  EXPECT_EQ(facts_text(report),
            "2 variables, 1 parameter, a client without a name, no fingerprint");
}

TEST(VerifyReport, HasAllAsJson) {
  EXPECT_EQ(to_json(two_checks(Result::kLeftOut)),
            R"({"ok":false,"variables":1,"parameters":12,"client":"python 1.0",)"
            R"("fingerprint":{"threads":"1","torch":"2.9"},"checks":[)"
            R"({"check":"steps","result":"ok","text":"finite"},)"
            R"({"check":"end","result":"left out","text":"late"}]})");
}

}  // namespace
}  // namespace disttf::roles
