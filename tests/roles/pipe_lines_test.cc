#include "roles/launch/shell/pipe_lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <string>
#include <thread>
#include <vector>

namespace disttf::roles {
namespace {

using testing::ElementsAre;

// The lines of a writer that writes `text` and ends.
std::vector<std::string> lines_of(const std::string& text) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  std::thread writer([&, write_end = data::FileDescriptor(ends[1])] {
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t count = write(write_end.number(), text.data() + at, text.size() - at);
      ASSERT_GT(count, 0);
      at += static_cast<std::size_t>(count);
    }
  });
  std::vector<std::string> lines;
  asio::io_context context;
  asio::co_spawn(context,
                 read_lines(data::FileDescriptor(ends[0]),
                            [&](std::string_view line) { lines.emplace_back(line); }),
                 asio::detached);
  context.run();
  writer.join();
  return lines;
}

TEST(ReadLines, HandsOverEachLineWithoutItsEnd) {
  EXPECT_THAT(lines_of("one\n\nthree\n"), ElementsAre("one", "", "three"));
}

TEST(ReadLines, HandsOverWhatAWriterThatDiedHadWritten) {
  EXPECT_THAT(lines_of("one\ntw"), ElementsAre("one", "tw"));
  EXPECT_THAT(lines_of(""), ElementsAre());
}

TEST(ReadLines, CutsALineThatIsTooLong) {
  constexpr std::size_t kMost = 64 * 1024;
  EXPECT_THAT(lines_of(std::string(kMost + 1, 'x') + "\nnext\n"),
              ElementsAre(std::string(kMost, 'x'), "x", "next"));
}

}  // namespace
}  // namespace disttf::roles
