#include "run/process/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace disttf::roles
