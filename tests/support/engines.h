// Tests that run disttf under something real: Slurm, containers, hosts of a network. A developer's
// machine may lack it, and they skip; where it has been installed they must not.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace disttf::test_support {

// Skips the running test and says why. With DISTTF_REQUIRE_ENGINES=1, as .ci/run has it, the test
// fails: a check that nobody sees skipped is lost. To be called last in SetUp(), or followed by
// a return.
inline void skip_without_engine(const std::string& why) {
  const char* const required = std::getenv("DISTTF_REQUIRE_ENGINES");
  if (required != nullptr && std::string_view(required) == "1") {
    FAIL() << "DISTTF_REQUIRE_ENGINES is 1, so this test may not be skipped: " << why;
  }
  GTEST_SKIP() << why;
}

}  // namespace disttf::test_support
