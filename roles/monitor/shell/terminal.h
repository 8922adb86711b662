// What standard output is: a terminal, how large, what it can show; and one that is redrawn.
//
// Not thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "roles/monitor/core/chart_text.h"

namespace disttf::roles {

// Variables of the environment, as they are; empty: not set.
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
  bool can_redraw = false;  // it has a cursor that can be moved
};

// Of a descriptor. Columns and rows are what the variables say, else what the terminal says, else
// 80 and 24. Where it is no terminal, there are no colours.
[[nodiscard]] TerminalState terminal_state(int fd, const TerminalVariables& variables);

// Text on standard output. Throws std::system_error.
void write_output(std::string_view text);

// A screen of its own, without a cursor, on the terminal that standard output is: what was there
// before is there again when the object goes.
class Screen {
 public:
  explicit Screen(bool is_used);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Shows these lines in the place of those before. More than there are rows are left out.
  void draw(const std::string& text, const TextStyle& style);
  // Ends earlier, or for a while; a second call does nothing.
  void leave() noexcept;
  void enter();
  [[nodiscard]] bool is_used() const noexcept { return is_used_; }

 private:
  bool is_used_;
  bool is_entered_ = false;
};

}  // namespace disttf::roles
