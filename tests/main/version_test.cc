// The output of `disttf --version`.
#include "main/version.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>

#include "main/command_line.h"
#include "main/licenses.h"
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

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string source_file(const std::string& name) {
  std::ifstream file(std::string(DISTTF_SOURCE_DIR "/") + name);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

nlohmann::json components() {
  return nlohmann::json::parse(source_file("deploy/licenses/components.json"));
}

TEST(Licenses, BeginWithTheNoticeAndHoldTheLicenceOfDisttf) {
  EXPECT_THAT(licenses_text(), StartsWith(source_file("NOTICE")));
  EXPECT_THAT(licenses_text(), HasSubstr(source_file("LICENSE")));
}

TEST(Licenses, HoldTheTextsOfEveryComponent) {
  const std::string all = licenses_text();
  for (const auto& component : components()) {
    for (const auto& name : component.at("texts")) {
      EXPECT_THAT(all,
                  HasSubstr(source_file("deploy/licenses/" + name.get<std::string>() + ".txt")))
          << component.at("name");
    }
  }
}

TEST(Licenses, TheNoticeNamesEveryComponentItsLicenceAndItsCopyright) {
  const std::string notice = source_file("NOTICE");
  for (const auto& component : components()) {
    EXPECT_THAT(notice,
                HasSubstr("  " + component.at("name").get<std::string>() + "\n      " +
                          component.at("license").get<std::string>() + "\n      Copyright " +
                          component.at("copyright").get<std::string>() + "\n"));
  }
}

// The SBOM test compares libraries() with the linked libraries, so this list is complete, too.
TEST(Licenses, AComponentIsNamedForEveryLibraryOfTheProgram) {
  const std::string rows = components().dump();
  for (const Library& library : libraries()) {
    EXPECT_THAT(rows, HasSubstr("\"name\":\"" + library.name + "\"")) << library.name;
  }
}

}  // namespace
}  // namespace disttf
