#include "roles/launch/shell/child_output.h"

#include <unistd.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "net/waiting/as_tuple.h"
#include "roles/launch/shell/child_process.h"

namespace disttf::roles {
namespace {

// Results are few. Beyond this size a user's program prints, and can wait.
constexpr std::size_t kFullBytes = std::size_t{1} << 20U;

}  // namespace

Console::Console()
    : terminal_(isatty(STDERR_FILENO) == 1 && log_format() == LogFormat::kText &&
                log_can_redraw()) {}

Console::~Console() { draw_live({}); }

void Console::print_output(std::string_view line) {
  // The live line is on standard error, which may be the same terminal: the result would be
  // appended to it.
  if (terminal_) {
    standard_error().set_live_line({});
  }
  standard_output().write(std::string(line) + "\n");
  if (terminal_) {
    standard_error().set_live_line(live_);
  }
}

void Console::print_line_of(const net::TaskId& task, std::string_view line) {
  const std::string name = log_prefix(task);
  if (log_format() == LogFormat::kText) {
    print_error(name + " " + std::string(line));
  } else if (is_json_log_line(line)) {
    // A task that logs JSON itself is passed through: a second envelope would hide its fields.
    print_error(line);
  } else {
    print_error(json_log_line(LogLevel::kInfo, name.substr(1, name.size() - 2), line));
  }
}

void Console::say(const std::string& sentence, LogLevel level) {
  print_error(log_format() == LogFormat::kText ? "disttf launch: " + sentence
                                               : json_log_line(level, "launch", sentence));
}

void Console::print_error(std::string_view line) {
  standard_error().write(std::string(line) + "\n");
}

void Console::draw_live(std::string line) {
  live_ = std::move(line);
  if (terminal_) {
    standard_error().set_live_line(live_);
  }
}

bool Console::is_output_full() { return standard_output().kept() >= kFullBytes; }

namespace {

// A longer line is split, to bound memory.
constexpr std::size_t kMaxLineBytes = 64 * 1024;
// Between two checks whether reading may continue.
constexpr std::chrono::milliseconds kPauseOfReading{20};

}  // namespace

asio::awaitable<void> read_lines(data::FileDescriptor fd, LineHandler handler,
                                 LinesPaused is_paused) {
  asio::steady_timer pause(co_await asio::this_coro::executor);
  // The descriptor closes the pipe when the coroutine ends.
  asio::posix::stream_descriptor descriptor(co_await asio::this_coro::executor, fd.release());
  std::string text;
  while (true) {
    // Not reading fills the pipe, which blocks the child until the reader of our output catches up.
    while (is_paused && is_paused()) {
      pause.expires_after(kPauseOfReading);
      co_await pause.async_wait(net::kAsTuple);
    }
    auto [error, length] = co_await asio::async_read_until(
        descriptor, asio::dynamic_buffer(text, kMaxLineBytes), '\n', net::kAsTuple);
    // not_found: the buffer is full without a line feed, so its content is passed on as a line. Any
    // other error is the end of the pipe.
    if (error && error != asio::error::not_found) {
      break;
    }
    const bool has_end = !error;
    const std::size_t taken = has_end ? length : text.size();
    handler(std::string_view(text).substr(0, has_end ? taken - 1 : taken));
    text.erase(0, taken);
  }
  if (!text.empty()) {
    handler(text);  // the child died in the middle of a line
  }
}

void LogTail::append(std::string_view line) {
  // One line must not push out everything else.
  line = line.substr(0, kMaxBytes / 2);
  text_.append(line) += '\n';
  // Drops a quarter at once, at the end of a line, so that not every further line moves the text.
  if (text_.size() > kMaxBytes) {
    const std::size_t cut = text_.find('\n', text_.size() - kMaxBytes * 3 / 4);
    text_.erase(0, cut + 1);
  }
  // The HTTP server owns the stream; an expired one belongs to a connection that has closed.
  std::erase_if(readers_, [line](const std::weak_ptr<net::HttpLineStream>& each) {
    const std::shared_ptr<net::HttpLineStream> reader = each.lock();
    if (reader) {
      reader->append(line);
    }
    return !reader;
  });
}

void LogTail::follow(const std::shared_ptr<net::HttpLineStream>& reader) {
  std::erase_if(readers_, [](const auto& each) { return each.expired(); });
  readers_.push_back(reader);
}

}  // namespace disttf::roles
