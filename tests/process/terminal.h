// A program on a terminal: its display, typed input, and the terminal's state after its end.
//
// The terminal interprets disttf's output, and records every byte. A test waits for displayed text,
// or for the program's end, always with a deadline. The program is killed and reaped with the
// object. Used by one thread.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/file.h"
#include "tests/process/process.h"

namespace disttf::test_process {

// The displayed lines, with the subset of terminal functions that disttf uses.
class TerminalScreen {
 public:
  void take(const std::string& bytes);
  void resize(std::size_t rows) { lines_.resize(rows); }
  // Returns the lines without the empty ones at the end.
  [[nodiscard]] std::vector<std::string> lines() const;
  [[nodiscard]] bool is_other_screen() const noexcept { return is_other_; }
  [[nodiscard]] bool has_cursor() const noexcept { return has_cursor_; }

 private:
  void take_escape(const std::string& sequence);
  void put(char c);

  std::vector<std::string> lines_ = std::vector<std::string>(24);
  std::vector<std::string> main_lines_;  // saved while the alternate screen is shown
  std::string escape_;                   // an incomplete escape sequence
  std::size_t row_ = 0;
  bool is_at_begin_ = true;  // of the row: new text replaces the existing text
  bool is_other_ = false;
  bool has_cursor_ = true;
};

struct TerminalOptions {
  std::string program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // the complete environment
  std::uint16_t columns = 80;
  std::uint16_t rows = 24;
};

class ProgramOnTerminal {
 public:
  explicit ProgramOnTerminal(const TerminalOptions& options);
  ~ProgramOnTerminal();
  ProgramOnTerminal(const ProgramOnTerminal&) = delete;
  ProgramOnTerminal& operator=(const ProgramOnTerminal&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void type(const std::string& keys) const;
  void resize(std::uint16_t columns, std::uint16_t rows);
  // Waits until `is_there` returns true for the screen. Returns false if `limit` passes or the
  // program ends.
  [[nodiscard]] bool wait_for(const std::function<bool(const TerminalScreen&)>& is_there,
                              std::chrono::milliseconds limit = kPatience);
  // Returns whether a line of the screen contains this text.
  [[nodiscard]] bool shows(const std::string& text);
  // Waits for its end, or for its stop if `is_stopped`.
  Ending wait();
  [[nodiscard]] bool wait_until_stopped();

  [[nodiscard]] const TerminalScreen& screen() const noexcept { return screen_; }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  // Returns whether screen, cursor and modes are as before the start.
  [[nodiscard]] bool is_left_as_it_was() const;
  // Returns whether typed text is echoed.
  [[nodiscard]] bool echoes() const;
  // Sets line mode with echo, as a shell does for itself.
  void set_line_mode() const;

 private:
  // Reads available output; waits for it until the deadline. Returns false if none came.
  bool read_some(std::chrono::steady_clock::time_point deadline);
  bool reap(int flags);

  data::FileDescriptor master_;
  data::FileDescriptor slave_;  // kept open, so that the terminal outlives the program
  termios before_{};
  pid_t pid_ = -1;
  data::FileDescriptor pidfd_;
  bool reaped_ = false;
  Ending ending_;
  TerminalScreen screen_;
  std::string bytes_;
};

}  // namespace disttf::test_process
