// The newest lines of a task: bounded, whole, and handed on.
#include "roles/launch/shell/log_tail.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace disttf::roles {
namespace {

TEST(LogTail, KeepsWhatCame) {
  LogTail log;
  log.append("first");
  log.append("");
  log.append("third");
  EXPECT_EQ(log.text(), "first\n\nthird\n");
}

TEST(LogTail, IsBoundedAndKeepsTheNewestWholeLines) {
  LogTail log;
  for (int each = 0; each < 100'000; ++each) {
    log.append("line " + std::to_string(each));
    ASSERT_LE(log.text().size(), LogTail::kMaxBytes);
  }
  EXPECT_GT(log.text().size(), LogTail::kMaxBytes / 2);
  EXPECT_TRUE(log.text().starts_with("line ")) << "and not in the middle of one";
  EXPECT_TRUE(log.text().ends_with("\nline 99999\n"));
}

TEST(LogTail, IsBoundedWhateverALineIs) {
  LogTail log;
  for (int each = 0; each < 10; ++each) {
    log.append(std::string(LogTail::kMaxBytes, 'a'));
    ASSERT_LE(log.text().size(), LogTail::kMaxBytes);
  }
}

TEST(LogTail, HandsOnNewLinesAsLongAsAReaderIsThere) {
  LogTail log;
  log.append("before");
  auto reader = std::make_shared<net::HttpLineStream>();
  log.follow(reader);
  log.append("after");
  EXPECT_EQ(reader->take(), "after\n");
  const std::weak_ptr<net::HttpLineStream> gone = reader;
  reader.reset();
  EXPECT_TRUE(gone.expired()) << "the log does not hold it";
  log.append("nobody");
}

}  // namespace
}  // namespace disttf::roles
