// The secret that a launch generates for its run.
#include "roles/launch/shell/run_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/tls/secrets.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RunSecret, IsAnotherEachTimeAndOneThatTasksTake) {
  const std::string one = make_run_secret();
  EXPECT_EQ(one.size(), 44U);
  EXPECT_NE(make_run_secret(), one);
  EXPECT_NO_THROW(net::Secrets(one, "test"));
}

TEST(RunSecret, IsToldInTheEnvironmentAlone) {
  EXPECT_THAT(secret_variables(SecretOfRun::kMade, "abc"), ElementsAre("DISTTF_SECRET=abc"));
  EXPECT_THAT(secret_variables(SecretOfRun::kNone, ""), ElementsAre("DISTTF_SECRET="))
      << "one that the launcher has is not handed on";
  EXPECT_THAT(secret_variables(SecretOfRun::kGiven, ""), IsEmpty());
}

}  // namespace
}  // namespace disttf::roles
