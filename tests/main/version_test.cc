// The output of `disttf --version`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "main/command_line.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Print printed_of(const std::string& line) { return action_of<Print>(line); }

TEST(CommandLine, PrintsItsVersion) {
  EXPECT_THAT(printed_of("--version").text,
              testing::MatchesRegex("disttf [0-9]+\\.[0-9]+\\.[0-9]+.*\n"));
  EXPECT_EQ(printed_of("--version").exit_code, roles::kDone);
}

// The test packages.sbom checks the contents of the list, and the installed versions.
TEST(CommandLine, PrintsWhatIsInIt) {
  const std::string text = printed_of("--version --verbose").text;
  EXPECT_THAT(text, StartsWith(printed_of("--version").text));
  EXPECT_THAT(text, testing::ContainsRegex("\nwire version [0-9]+\ncompiled by GCC [0-9.]+ for "));
  EXPECT_THAT(text, testing::ContainsRegex("\n  OpenSSL [0-9.]+( .libssl-dev [^ ]+.)?\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  zlib [0-9.]+( .zlib1g-dev [^ ]+.)?\n"));
  EXPECT_THAT([] { static_cast<void>(parse("--version --brief")); },
              testing::ThrowsMessage<std::invalid_argument>(
                  HasSubstr("takes only --verbose, not \"--brief\"")));
}

}  // namespace
}  // namespace disttf
