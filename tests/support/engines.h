// Support for tests that run disttf under real systems: Slurm, containers, hosts of a network.
// Where such a system is not installed, tests skip; in .ci/run they must not.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace disttf::test_support {

// Skips the running test and says why. With DISTTF_REQUIRE_ENGINES=1, as in .ci/run, the test fails
// instead, because skipped tests go unnoticed. Call it last in SetUp(), or follow it with a return.
inline void skip_without_engine(const std::string& why) {
  const char* const required = std::getenv("DISTTF_REQUIRE_ENGINES");
  if (required != nullptr && std::string_view(required) == "1") {
    FAIL() << "DISTTF_REQUIRE_ENGINES is 1, so this test may not be skipped: " << why;
  }
  GTEST_SKIP() << why;
}

}  // namespace disttf::test_support
