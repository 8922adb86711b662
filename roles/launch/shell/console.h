// A launcher's output: lines of its children and its own, and on a terminal one live line below
// them. Never waits for a reader.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

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

}  // namespace disttf::roles
