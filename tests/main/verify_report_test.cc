// What `disttf verify` prints of its checks.
#include "main/verify/verify_report.h"

#include <gtest/gtest.h>

namespace disttf::roles {
namespace {

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
