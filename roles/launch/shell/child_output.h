// The output of a launch's children: read, kept, printed.
//
// A launcher's output: lines of its children and its own, and on a terminal one live line below
// them. Never waits for a reader.
//
// Not thread-safe.
#pragma once

#include <asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "net/http/http_reply.h"
#include "net/wire/cluster.h"
#include "run/process/log.h"

namespace disttf::roles {

class Console {
 public:
  // Draws the live line only if standard error is a terminal with cursor control (TERM is set, and
  // is not dumb) and the log is text.
  Console();
  ~Console();  // removes the live line
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Prints to standard output, unchanged.
  void print_output(std::string_view line);
  // Prints a task's line to standard error: "[worker:1] ...". In JSON a line of the log is passed
  // on unchanged; another line becomes the message of one.
  void print_line_of(const net::TaskId& task, std::string_view line);
  // Prints the launcher's own message to standard error: "disttf launch: ...".
  void say(const std::string& sentence, LogLevel level = LogLevel::kInfo);
  void draw_live(std::string line);  // replaces the live line

  // Whether the reader of standard output is so slow that writers should wait.
  [[nodiscard]] static bool is_output_full();

 private:
  void print_error(std::string_view line);

  bool terminal_;
  std::string live_;
};

// Reads the output of a child, line by line.

using LineHandler = std::function<void(std::string_view)>;  // without the line's end

// While it returns true nothing is read: the writer of the pipe blocks when that is full.
using LinesPaused = std::function<bool()>;

// Reads the pipe to its end. Splits lines of more than 64 KiB. The last line may lack its end: the
// writer may have died in the middle of it.
asio::awaitable<void> read_lines(data::FileDescriptor fd, LineHandler handler,
                                 LinesPaused is_paused = {});

// The newest lines of one task of a launch, and its readers that follow.
//
// Everything runs on the one thread that runs the io_context.
class LogTail {
 public:
  // Per task, whatever it prints: about a thousand lines. A full buffer drops the oldest quarter.
  static constexpr std::size_t kMaxBytes = 128 * 1024;

  void append(std::string_view line);  // without its end
  // The kept lines, oldest first, each with its end.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  // Sends every line from now on to `reader`, as long as another owner holds it.
  void follow(const std::shared_ptr<net::HttpLineStream>& reader);

 private:
  std::string text_;
  std::vector<std::weak_ptr<net::HttpLineStream>> readers_;
};

}  // namespace disttf::roles
