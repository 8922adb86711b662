#include "run/process/log.h"

#include <fcntl.h>
#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "data/json/json_text.h"
#include "run/outcome.h"
#include "run/process/stop_signal.h"
#include "text/shown_text.h"

namespace disttf::roles {
namespace {

// For log lines without a reader: thousands of them. Twice as much would help no reader, and half
// of it would be filled by a second of a fast run that logs every step.
constexpr std::size_t kMostKeptBytes = std::size_t{256} << 10U;
// The time at the end for a reader of the log that pauses.
constexpr std::chrono::seconds kLogShutdownTime{2};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// One JSON object a line. The message passes through the JSON library, since it may contain
// anything that a peer or the environment has sent.
class JsonFormatter final : public spdlog::formatter {
 public:
  explicit JsonFormatter(std::string task)
      : task_(std::move(task)),
        time_("%Y-%m-%dT%H:%M:%S.%eZ", spdlog::pattern_time_type::utc, "") {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t time;
    time_.format(message, time);
    const auto level = spdlog::level::to_string_view(message.level);
    const nlohmann::ordered_json line = {
        {"time", std::string(time.data(), time.size())},
        {"level", std::string(level.data(), level.size())},
        {"task", task_},
        {"message", std::string(message.payload.data(), message.payload.size())}};
    // An escaped character in a JSON string means the same to a reader.
    const std::string text = shown_text(data::json_text(line)) + "\n";
    out.append(text.data(), text.data() + text.size());
  }

  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(task_);
  }

 private:
  std::string task_;
  spdlog::pattern_formatter time_;
};

// Text, with characters from outside escaped unless they already are: no file name, peer or
// variable can add a line to the log or control the terminal.
class TextFormatter final : public spdlog::formatter {
 public:
  explicit TextFormatter(const char* pattern) : pattern_(pattern), form_(pattern) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const std::string text =
        shown_text({message.payload.data(), message.payload.size()}, KeptBreaks::kIndented);
    spdlog::details::log_msg shown = message;
    shown.payload = spdlog::string_view_t(text.data(), text.size());
    form_.format(shown, out);
  }

  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<TextFormatter>(pattern_);
  }

 private:
  const char* const pattern_;
  spdlog::pattern_formatter form_;
};

std::unique_ptr<spdlog::formatter> make_formatter(const LogOptions& options) {
  if (options.format == LogFormat::kJson) {
    return std::make_unique<JsonFormatter>(options.task);
  }
  return std::make_unique<TextFormatter>(
      options.name_task && !options.task.empty() ? "%H:%M:%S.%e %L [%n] %v" : "%H:%M:%S.%e %L %v");
}

std::string formatted(spdlog::formatter& formatter, LogLevel level, std::string_view task,
                      std::string_view message) {
  spdlog::memory_buf_t text;
  formatter.format(
      spdlog::details::log_msg(spdlog::string_view_t(task.data(), task.size()), to_spdlog(level),
                               spdlog::string_view_t(message.data(), message.size())),
      text);
  return {text.data(), text.size()};
}

std::shared_ptr<BufferedSink> open_standard_error(const LogOptions& options) {
  const std::shared_ptr<spdlog::formatter> formatter = make_formatter(options);
  return std::make_shared<BufferedSink>(
      STDERR_FILENO, kMostKeptBytes, [formatter, task = options.task](std::uint64_t lines) {
        return formatted(*formatter, LogLevel::kWarning, task,
                         std::to_string(lines) + " log lines dropped: the reader was too slow");
      });
}

std::shared_ptr<BufferedSink> open_standard_output() {
  return std::make_shared<BufferedSink>(STDOUT_FILENO, BufferedSink::kKeepAll,
                                        [](std::uint64_t) { return std::string(); });
}

// A process has one of each, and spdlog one default logger. They are never destroyed: a thread may
// be waiting for their reader when the process ends.
struct Streams {
  LogFormat format = LogFormat::kText;
  bool can_redraw = false;
  std::shared_ptr<BufferedSink> output = open_standard_output();
  std::shared_ptr<BufferedSink> error = open_standard_error({});
};

Streams& streams() {
  static Streams& only = *new Streams;  // NOLINT(cppcoreguidelines-owning-memory): as said above
  return only;
}

class Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit Sink(std::shared_ptr<BufferedSink> output) : output_(std::move(output)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    output_->write({text.data(), text.size()});
  }
  void flush_() override {}

 private:
  const std::shared_ptr<BufferedSink> output_;
};

}  // namespace

void set_up_log(const LogOptions& options) {
  Streams& all = streams();
  all.format = options.format;
  all.can_redraw = options.can_redraw;
  all.output = open_standard_output();
  all.error = open_standard_error(options);
  auto logger = std::make_shared<spdlog::logger>(options.task, std::make_shared<Sink>(all.error));
  logger->set_level(to_spdlog(options.level));
  logger->set_formatter(make_formatter(options));
  spdlog::set_default_logger(std::move(logger));
}

LogFormat log_format() noexcept { return streams().format; }

bool log_can_redraw() noexcept { return streams().can_redraw; }

std::string json_log_line(LogLevel level, std::string_view task, std::string_view message) {
  JsonFormatter formatter{std::string(task)};
  std::string line = formatted(formatter, level, task, message);
  line.pop_back();
  return line;
}

bool is_json_log_line(std::string_view line) {
  if (!line.starts_with('{')) {
    return false;
  }
  const auto object = data::parse_json(line);
  return object.is_object() &&
         std::ranges::all_of(std::array{"time", "level", "task", "message"},
                             [&object](const char* key) { return object.contains(key); });
}

void log_debug(std::string_view message) { spdlog::debug("{}", message); }
void log_info(std::string_view message) { spdlog::info("{}", message); }
void log_warning(std::string_view message) { spdlog::warn("{}", message); }
void log_error(std::string_view message) { spdlog::error("{}", message); }

void log_note(const Note& note) {
  switch (note.level) {
    case Note::Level::kDebug:
      return log_debug(note.text);
    case Note::Level::kInfo:
      return log_info(note.text);
    case Note::Level::kWarning:
      return log_warning(note.text);
  }
}

void log_exception(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    log_error(error.what());
  }
}

void print_result(std::string_view line) {
  standard_output().write(shown_text(line, KeptBreaks::kAll) + "\n");
}

void print_written(std::string_view line, const std::filesystem::path& output) {
  struct stat ours {};
  struct stat other {};
  // Compared by device and inode, since paths such as /dev/stdout name the same file in other
  // words.
  const bool is_output = fstat(STDOUT_FILENO, &ours) == 0 && stat(output.c_str(), &other) == 0 &&
                         ours.st_dev == other.st_dev && ours.st_ino == other.st_ino;
  is_output ? log_info(line) : print_result(line);
}

BufferedSink& standard_output() { return *streams().output; }
BufferedSink& standard_error() { return *streams().error; }

namespace {

// Returns why standard output lacks something that was written to it; no error if it lacks nothing.
std::error_code output_failure() {
  // Libraries write to standard output through stdio, which has a buffer of its own.
  const bool is_flushed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const int flush_error = errno;
  if (const std::error_code error = standard_output().failure()) {
    return error;
  }
  if (!is_flushed) {
    return {flush_error == 0 ? EIO : flush_error, std::generic_category()};
  }
  // A network file system may report a failed write only now. A descriptor that cannot be
  // duplicated does not matter here.
  const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  return copy >= 0 && close(copy) != 0 && errno != EINTR
             ? std::error_code(errno, std::generic_category())
             : std::error_code();
}

}  // namespace

int finish_output(int exit_code) {
  errno = 0;
  // Usually all is written, and signals stay as they are. Otherwise the reader is slow.
  if (!standard_output().drain(net::Clock::now())) {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM}) {
      // A user must be able to end the wait for a reader.
      std::signal(number, end_by_signal);
      sigaddset(&set, number);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    while (!standard_output().drain(net::Clock::now() + std::chrono::hours(1))) {
    }
  }
  if (const std::error_code error = output_failure(); error && exit_code == kDone) {
    log_error("cannot write to standard output: " + error.message() +
              "; results were lost or cut off");
    exit_code = kError;
    // A failure of the run itself keeps its exit code; the loss of results is only logged.
  } else if (error && standard_output().failure()) {
    log_warning("cannot write to standard output: " + error.message() +
                "; results were lost or cut off");
  }
  // Last, since the lines above are to be read, too. Its reader is not waited for without a limit:
  // log lines may be lost, results may not.
  standard_error().drain(net::Clock::now() + kLogShutdownTime);
  return exit_code;
}

}  // namespace disttf::roles
