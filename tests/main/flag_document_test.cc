#include "tests/main/flag_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/main/flag_document_path.h"

namespace disttf {
namespace {

// `make flags-document` runs this test with DISTTF_REWRITE set, which rewrites the document.
TEST(FlagDocument, IsWhatTheFlagsSay) {
  const std::string document = read_flag_document();
  const std::string made = with_tables(document);
  if (std::getenv("DISTTF_REWRITE") != nullptr) {
    std::ofstream(kFlagDocumentPath) << made;
    return;
  }
  EXPECT_EQ(document, made) << "make flags-document regenerates the tables";
}

TEST(FlagDocument, KeepsTheProseAroundItsTables) {
  const std::string made =
      with_tables("before\n\n<!-- flags: plus, Log -->\n\n| old |\n| rows |\n\nafter | it\n");
  EXPECT_THAT(made, testing::StartsWith("before\n\n<!-- flags: plus, Log -->\n\n"
                                        "| flag | default | |\n|---|---|---|\n| `--log_level`"));
  EXPECT_THAT(made, testing::EndsWith(" |\n\nafter | it\n"));
  EXPECT_EQ(with_tables(made), made);
  EXPECT_THROW(static_cast<void>(with_tables("<!-- flags: dance, Log -->\n")),
               std::invalid_argument);
  EXPECT_THROW(static_cast<void>(with_tables("<!-- flags: plus, Training -->\n")),
               std::invalid_argument);
}

}  // namespace
}  // namespace disttf
