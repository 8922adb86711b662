#include "run/process/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "data/file.h"
#include "run/process/buffered_sink.h"
#include "run/process/note_limit.h"
#include "tests/support/pipe.h"

namespace disttf::roles {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

// Configures the log, calls `call`, and returns what was written to standard error.
template <typename Call>
std::string logged(const LogOptions& options, Call call) {
  testing::internal::CaptureStderr();
  set_up_log(options);
  call();
  std::string text = testing::internal::GetCapturedStderr();
  set_up_log({});
  return text;
}

// Without the name of a task.
LogOptions plain_options(LogLevel level, LogFormat format) {
  return {.level = level, .format = format, .task = {}};
}

void log_all_levels() {
  log_debug("a debug line");
  log_info("an info line");
  log_warning("a warning line");
  log_error("an error line");
}

TEST(Log, WritesOneLineAMessage) {
  const std::string text = logged({}, [] { log_info("hello"); });
  EXPECT_TRUE(std::regex_match(text, std::regex(R"(\d\d:\d\d:\d\d\.\d{3} I hello\n)"))) << text;
}

TEST(Log, NamesTheTask) {
  const LogOptions options{.task = "worker:1"};
  EXPECT_THAT(logged(options, [] { log_info("hello"); }), HasSubstr(" I [worker:1] hello\n"));
}

TEST(Log, LeavesTheNameToTheLauncherWhenToldTo) {
  const LogOptions options{.task = "worker:1", .name_task = false};
  EXPECT_THAT(logged(options, [] { log_info("hello"); }), HasSubstr(" I hello\n"));
}

TEST(Log, LeavesOutWhatIsBelowTheLevel) {
  const struct {
    LogLevel level;
    int lines;
  } cases[] = {{LogLevel::kDebug, 4},
               {LogLevel::kInfo, 3},
               {LogLevel::kWarning, 2},
               {LogLevel::kError, 1},
               {LogLevel::kOff, 0}};
  for (const auto& [level, lines] : cases) {
    const std::string text = logged(plain_options(level, LogFormat::kText), log_all_levels);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), lines);
  }
}

TEST(Log, TakesAMessageAsItIsAndNotAsAPattern) {
  EXPECT_THAT(logged({}, [] { log_info("100 % {} {0} %v"); }), HasSubstr("100 % {} {0} %v\n"));
}

TEST(JsonLog, HasTimeLevelTaskAndMessage) {
  const LogOptions options{.format = LogFormat::kJson, .task = "ps:0"};
  const json line = json::parse(logged(options, [] { log_warning("hello"); }));
  EXPECT_EQ(line.at("level"), "warning");
  EXPECT_EQ(line.at("task"), "ps:0");
  EXPECT_EQ(line.at("message"), "hello");
  EXPECT_TRUE(std::regex_match(line.at("time").get<std::string>(),
                               std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")))
      << line;
}

// For example, the name of a file.
TEST(Log, NeverHasALineThatAMessageForged) {
  const std::string forged =
      "no image: a\n12:00:00.000 I Digits accuracy: 0.9999\x1b]0;mine\a\u202e";
  const std::string text = logged({}, [&] { log_error(forged); });
  EXPECT_THAT(text, testing::EndsWith(" E no image: a\\n12:00:00.000 I Digits accuracy: "
                                      "0.9999\\x1b]0;mine\\x07\\u202e\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(Log, KeepsASentenceOfSeveralLines) {
  EXPECT_THAT(logged({}, [] { log_error("from any mirror:\n  one: 404\n  two: 500"); }),
              testing::EndsWith(" E from any mirror:\n  one: 404\n  two: 500\n"));
}

TEST(JsonLog, HasNoCharacterThatATerminalObeys) {
  const std::string message = "a\u009b\u202eb\x7f";
  const std::string text =
      logged(plain_options(LogLevel::kInfo, LogFormat::kJson), [&] { log_info(message); });
  EXPECT_THAT(text, HasSubstr(R"(a\u009b\u202eb\u007f)"));
  EXPECT_EQ(json::parse(text).at("message"), message);
}

TEST(JsonLog, IsOneValidObjectALineWhateverTheMessageHolds) {
  const std::vector<std::string> hostile = {
      "a \"quote\" and a \\ backslash", "two\nlines\r\n",
      std::string("a NUL \0 byte", 12), "\x1b[2J escape",
      "not UTF-8: \xff\xfe\xc3",        "\"}\n{\"level\":\"forged\"",
      std::string(100'000, 'x'),        "",
  };
  for (const std::string& message : hostile) {
    const std::string text =
        logged(plain_options(LogLevel::kInfo, LogFormat::kJson), [&] { log_error(message); });
    ASSERT_FALSE(text.empty());
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
    const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(line.is_object()) << text;
    EXPECT_EQ(line.at("level"), "error");
  }
}

TEST(JsonLog, KeepsTheMessageByteForByteWhereItIsUtf8) {
  const std::string message = "Zürich \"quoted\"\n\ttab \x01";
  const json line = json::parse(
      logged(plain_options(LogLevel::kInfo, LogFormat::kJson), [&] { log_info(message); }));
  EXPECT_EQ(line.at("message"), message);
}

TEST(PrintResult, WritesTheLineToStandardOutputAlone) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  set_up_log({});  // logs to the captured streams
  print_result("MNIST accuracy: 0.9771");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "MNIST accuracy: 0.9771\n");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
}

// The buffered log sink with a pipe and a terminal whose reader pauses.

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

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(NoteLimit, TellsPeersAndKindsApart) {
  EXPECT_EQ(NoteLimit::kind_of("refused worker 1 (10.0.0.7:2222): malformed frame of 12 bytes"),
            "refused worker 1 ");
  EXPECT_EQ(NoteLimit::kind_of("worker 12 (10.0.0.7:2222) joined at step 345"),
            "worker 12  joined at step ");
  EXPECT_EQ(NoteLimit::kind_of("a (b: c"), "a ");
}

TEST(NoteLimit, WritesTheFirstOfEachPeerAndKind) {
  NoteLimit limit;
  const NoteLimit::Time now;
  for (int worker = 0; worker < 1000; ++worker) {
    const std::string name = "worker " + std::to_string(worker);
    EXPECT_EQ(limit.admit(name + " joined", now), name + " joined");
    EXPECT_EQ(limit.admit(name + " was lost", now), name + " was lost");
  }
}

TEST(NoteLimit, OfAFloodLeavesOneASecondAndSaysHowManyAreMissing) {
  NoteLimit limit;
  const NoteLimit::Time begin;
  std::uint64_t written = 0;
  std::string last;
  for (int step = 0; step < 10'000; ++step) {
    const auto said = limit.admit("refused worker 1 (a:1): number " + std::to_string(step),
                                  begin + milliseconds(step));
    if (said) {
      ++written;
      last = *said;
    }
  }
  EXPECT_EQ(written, NoteLimit::kBurst + 9);
  EXPECT_EQ(last,
            "refused worker 1 (a:1): number 9000 (999 more messages like this were suppressed)");
  EXPECT_EQ(limit.admit("refused worker 2 (a:2): number 1", begin + seconds(10)),
            "refused worker 2 (a:2): number 1")
      << "another peer";
}

TEST(NoteLimit, IsFilledAgainByAQuietTime) {
  NoteLimit limit;
  NoteLimit::Time now;
  for (std::uint64_t each = 0; each < 2 * NoteLimit::kBurst; ++each) {
    static_cast<void>(limit.admit("a 1", now));
  }
  now += seconds(NoteLimit::kBurst);
  for (std::uint64_t each = 0; each < NoteLimit::kBurst; ++each) {
    EXPECT_TRUE(limit.admit("a 1", now)) << each;
  }
  EXPECT_FALSE(limit.admit("a 1", now));
}

}  // namespace
}  // namespace disttf::roles
