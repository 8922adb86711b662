// The buffered log sink with a pipe and a terminal whose reader pauses.
#include "run/process/buffered_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#include "data/file.h"
#include "tests/support/pipe.h"

namespace disttf::roles {
namespace {

constexpr std::chrono::seconds kReaderPatience{30};

std::string numbered(int number) {
  return "line " + std::to_string(number) + std::string(90, '.') + "\n";
}

class BufferedSinkTest : public ::testing::Test {
 protected:
  BufferedSinkTest() { std::signal(SIGPIPE, SIG_IGN); }  // as every command does
  static std::string note(std::uint64_t lines) { return std::to_string(lines) + " left out\n"; }
  // Reads until everything that was kept has arrived.
  std::string read_all(BufferedSink& output) {
    fcntl(pipe_.read_end.number(), F_SETFL, O_NONBLOCK);
    std::string text;
    std::array<char, 4096> buffer{};
    const auto limit = net::Clock::now() + kReaderPatience;
    for (bool is_last = false; !is_last && net::Clock::now() < limit;) {
      is_last = output.kept() == 0;
      for (ssize_t count = 0;
           (count = read(pipe_.read_end.number(), buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
      }
    }
    return text;
  }

  test_support::Pipe pipe_;
};

TEST_F(BufferedSinkTest, KeepsAllInOrderForAReaderThatPauses) {
  BufferedSink output(pipe_.write_end.number(), BufferedSink::kKeepAll, note);
  std::string expected;
  for (int each = 0; each < 5000; ++each) {  // seven times the pipe's capacity
    output.write(numbered(each));
    expected += numbered(each);
  }
  EXPECT_GT(output.kept(), 0U);
  EXPECT_FALSE(output.drain(net::Clock::now()));
  EXPECT_EQ(read_all(output), expected);
  EXPECT_TRUE(output.drain(net::Clock::now()));
}

TEST_F(BufferedSinkTest, LeavesTheOldestOfTheKeptOutAndSaysHowMany) {
  constexpr std::size_t kMost = 10'000;
  constexpr int kLines = 5000;
  BufferedSink output(pipe_.write_end.number(), kMost, note);
  for (int each = 0; each < kLines; ++each) {
    output.write(numbered(each));
    ASSERT_LE(output.kept(), kMost + 200);
  }
  const std::string text = read_all(output);
  const std::size_t at = text.find(" left out\n");
  ASSERT_NE(at, std::string::npos);
  const std::size_t begin = text.rfind('\n', at) + 1;
  const int omitted = std::stoi(text.substr(begin));
  std::string expected;
  int number = 0;
  for (; expected.size() < begin; ++number) {
    expected += numbered(number);
  }
  expected += note(static_cast<std::uint64_t>(omitted));
  for (number += omitted; number < kLines; ++number) {
    expected += numbered(number);
  }
  EXPECT_EQ(text, expected);
}

TEST_F(BufferedSinkTest, DoesNotWaitForAReaderThatHasGone) {
  BufferedSink output(pipe_.write_end.number(), BufferedSink::kKeepAll, note);
  signal(SIGPIPE, SIG_IGN);
  for (int each = 0; each < 2000; ++each) {
    output.write(numbered(each));
  }
  pipe_.read_end = data::FileDescriptor();
  EXPECT_TRUE(output.drain(net::Clock::now() + kReaderPatience));
  output.write(numbered(0));
  EXPECT_EQ(output.kept(), 0U);
  signal(SIGPIPE, SIG_DFL);
}

// Other processes with the same descriptor must not find its flags changed.
TEST_F(BufferedSinkTest, LeavesTheDescriptorsFlagsAlone) {
  const int before = fcntl(pipe_.write_end.number(), F_GETFL);
  BufferedSink output(pipe_.write_end.number(), BufferedSink::kKeepAll, note);
  output.write(numbered(0));
  EXPECT_EQ(fcntl(pipe_.write_end.number(), F_GETFL), before);
}

TEST_F(BufferedSinkTest, WritesToASocketThatIsFull) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  pipe_.read_end = data::FileDescriptor(ends[0]);
  const data::FileDescriptor end(ends[1]);
  BufferedSink output(end.number(), BufferedSink::kKeepAll, note);
  std::string expected;
  for (int each = 0; each < 20'000; ++each) {
    output.write(numbered(each));
    expected += numbered(each);
  }
  EXPECT_GT(output.kept(), 0U);
  EXPECT_EQ(read_all(output), expected);
}

TEST_F(BufferedSinkTest, RemembersWhyALineWasLost) {
  const data::FileDescriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.is_open());
  BufferedSink output(full.number(), BufferedSink::kKeepAll, note);
  EXPECT_FALSE(output.failure());
  output.write("lost\n");
  EXPECT_EQ(output.failure(), std::errc::no_space_on_device);
}

TEST_F(BufferedSinkTest, RemembersThatItsReaderHasGone) {
  BufferedSink output(pipe_.write_end.number(), BufferedSink::kKeepAll, note);
  output.write("read\n");
  EXPECT_EQ(read_all(output), "read\n");
  EXPECT_FALSE(output.failure());
  pipe_.read_end = {};
  output.write("lost\n");
  EXPECT_TRUE(output.drain(net::Clock::now()));
  EXPECT_EQ(output.failure(), std::errc::broken_pipe);
}

// open_standard_descriptors() replaces a closed standard output with such a descriptor.
TEST_F(BufferedSinkTest, RemembersThatItMayNotBeWritten) {
  const data::FileDescriptor unwritable(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(unwritable.is_open());
  BufferedSink output(unwritable.number(), BufferedSink::kKeepAll, note);
  EXPECT_FALSE(output.failure()) << "nothing was written yet";
  output.write("lost\n");
  output.drain(net::Clock::now() + kReaderPatience);
  EXPECT_TRUE(output.failure());
}

// ---- The live line ----

class LiveLine : public ::testing::Test {
 protected:
  LiveLine() {
    grantpt(terminal_.number());
    unlockpt(terminal_.number());
    program_ =
        data::FileDescriptor(open(ptsname(terminal_.number()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    termios raw{};
    tcgetattr(program_.number(), &raw);
    cfmakeraw(&raw);
    tcsetattr(program_.number(), TCSANOW, &raw);
    resize(40);
    fcntl(terminal_.number(), F_SETFL, O_NONBLOCK);
  }
  void resize(std::uint16_t columns) const {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(ioctl(program_.number(), TIOCSWINSZ, &size), 0);
  }
  // Returns what was written since the last call. write() returns only after everything was
  // written.
  std::string shown() {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t count = 0; (count = read(terminal_.number(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  data::FileDescriptor terminal_{posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  data::FileDescriptor program_;
};

TEST_F(LiveLine, IsErasedBeforeALineOfAnyThreadAndDrawnAgainBehindIt) {
  BufferedSink output(program_.number(), BufferedSink::kKeepAll,
                      [](std::uint64_t) { return std::string(); });
  output.set_live_line("step 1");
  EXPECT_EQ(shown(), "step 1");
  std::thread([&] { output.write("a warning\n"); }).join();
  EXPECT_EQ(shown(), "\r\x1b[Ja warning\nstep 1");
  output.set_live_line("step 2");
  EXPECT_EQ(shown(), "\r\x1b[Jstep 2");
  output.set_live_line("");
  EXPECT_EQ(shown(), "\r\x1b[J");
  output.write("the end\n");
  EXPECT_EQ(shown(), "the end\n");
}

TEST_F(LiveLine, IsCutToTheWidthAndErasedInAllItsRowsAfterAResize) {
  BufferedSink output(program_.number(), BufferedSink::kKeepAll,
                      [](std::uint64_t) { return std::string(); });
  output.set_live_line(std::string(60, 'x'));
  EXPECT_EQ(shown(), std::string(39, 'x'));
  resize(20);  // 39 characters take two rows now
  output.set_live_line(std::string(60, 'y'));
  EXPECT_EQ(shown(), "\r\x1b[A\x1b[J" + std::string(19, 'y'));
  resize(80);
  output.set_live_line(std::string(60, 'z'));
  EXPECT_EQ(shown(), "\r\x1b[J" + std::string(60, 'z'));
}

}  // namespace
}  // namespace disttf::roles
