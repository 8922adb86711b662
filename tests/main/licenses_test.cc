#include "main/licenses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "main/libraries.h"

namespace disttf {
namespace {

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
