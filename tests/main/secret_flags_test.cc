// Who reads a secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <variant>

#include "main/command_line.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

TEST(CommandLine, WhoReadsASecretKeepsItsMemoryPrivate) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the leak detector looks into the process";
#endif
  const auto dumpable = [](const Environment& environment) {
    static_cast<void>(parse("ps --task_index=0" + kHosts, environment));
    _exit(prctl(PR_GET_DUMPABLE));
  };
  EXPECT_EXIT(dumpable({}), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(dumpable({{"DISTTF_SECRET", std::string(32, 's')}}), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace disttf
