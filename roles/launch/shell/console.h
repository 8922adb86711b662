// Where a launcher prints: lines of its children and its own, and on a terminal one live line below
// them. Never waits for a reader.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "net/wire/cluster.h"
#include "roles/process/log.h"

namespace disttf::roles {

class Console {
 public:
  // The live line is drawn only when standard error is a terminal with a cursor that can be
  // moved (TERM is set, and is not dumb) and the log is text.
  Console();
  ~Console();  // removes the live line
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // To standard output, as it is.
  void print_output(std::string_view line);
  // To standard error, what a task has printed: "[worker:1] ...". As JSON it is a line of a log
  // already, and passed on as it is, or becomes the message of one.
  void print_line_of(const net::TaskId& task, std::string_view line);
  // To standard error, what the launcher itself has to say: "disttf launch: ...".
  void say(const std::string& sentence, LogLevel level = LogLevel::kInfo);
  void draw_live(std::string line);  // replaces the live line

  // Whether whoever reads standard output is so far behind that its writers should wait.
  [[nodiscard]] static bool is_output_full();

 private:
  void print_error(std::string_view line);

  bool terminal_;
  std::string live_;
};

}  // namespace disttf::roles
