// Standard output: whether it is a terminal, its size and abilities; and a redrawn screen.
//
// Not thread-safe.
#pragma once

#include <termios.h>

#include <string>
#include <string_view>

#include "run/monitor/core/chart.h"

namespace disttf::roles {

// Environment variables, unchanged; empty: not set.
struct TerminalVariables {
  std::string columns;   // COLUMNS
  std::string lines;     // LINES
  std::string term;      // TERM
  std::string no_color;  // NO_COLOR: with any value there are no colours
  std::string locale;    // LC_ALL, else LC_CTYPE, else LANG
};

struct TerminalState {
  TextStyle style;
  bool is_terminal = false;
  bool can_redraw = false;  // it supports cursor movement
};

// For a descriptor. Columns and rows come from the variables, else from the terminal, else they are
// 80 and 24. Without a terminal there are no colours.
[[nodiscard]] TerminalState terminal_state(int fd, const TerminalVariables& variables);

// Writes text to standard output. Throws std::system_error.
void write_output(std::string_view text);

// An alternate screen without a cursor on the terminal that is standard output. The destructor
// restores the previous contents.
class Screen {
 public:
  explicit Screen(bool is_used);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Replaces the displayed lines. Omits lines beyond the last row.
  void draw(const std::string& text, const TextStyle& style);
  // Leaves the screen early, or temporarily; a second call does nothing.
  void leave() noexcept;
  void enter();
  [[nodiscard]] bool is_used() const noexcept { return is_used_; }

 private:
  bool is_used_;
  bool is_entered_ = false;
};

// Reads single keys without Enter and without echo, if standard input is a terminal and this
// process is in its foreground. Otherwise there are no keys.
class TerminalKeys {
 public:
  explicit TerminalKeys(bool is_used) : is_used_(is_used) { enter(); }
  ~TerminalKeys() { leave(); }
  TerminalKeys(const TerminalKeys&) = delete;
  TerminalKeys& operator=(const TerminalKeys&) = delete;

  // leave() restores the terminal's modes; enter() sets them again. Both may be called at any time,
  // also after a stop, in which a shell has used the terminal.
  void leave() noexcept;
  void enter() noexcept;

  // A descriptor for poll(); -1: no keys are possible now.
  [[nodiscard]] int descriptor() const noexcept;
  // To be called when poll() reports input. Omits keys that are no characters, which arrive as
  // escape sequences.
  [[nodiscard]] std::string take();

 private:
  bool is_used_;
  bool is_entered_ = false;
  termios before_{};  // the modes to restore
};

}  // namespace disttf::roles
