// The newest lines of a task: bounded, whole, and handed on.
#include "roles/launch/shell/log_tail.h"

#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
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
  asio::io_context context;
  LogTail log;
  log.append("before");
  auto reader = std::make_shared<net::HttpLineStream>(context);
  log.follow(reader);
  log.append("after");
  std::string text;
  asio::co_spawn(
      context, [&]() -> asio::awaitable<void> { EXPECT_TRUE(co_await reader->take(text)); },
      asio::detached);
  context.run();
  EXPECT_EQ(text, "after\n");
  const std::weak_ptr<net::HttpLineStream> gone = reader;
  reader.reset();
  EXPECT_TRUE(gone.expired()) << "the log does not hold it";
  log.append("nobody");
}

}  // namespace
}  // namespace disttf::roles
