#include "run/monitor/shell/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

// Parses the number in a variable; 0: there is none.
std::size_t number_in(const std::string& text) {
  constexpr std::size_t kMost = 1000;
  return std::min(net::whole_number(text).value_or(0), kMost);
}

bool is_utf8(const std::string& locale) {
  const std::string lower = net::to_lower(locale);
  return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
}

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kEraseLine = "\x1b[K";        // to the right
constexpr std::string_view kEraseFromCursor = "\x1b[J";  // and below

}  // namespace

TerminalState terminal_state(int fd, const TerminalVariables& variables) {
  TerminalState state;
  state.is_terminal = isatty(fd) == 1;
  winsize size{};
  const bool has_size = state.is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0;
  // The variables win, so that a user or a test can set another size.
  const std::size_t columns = number_in(variables.columns);
  const std::size_t rows = number_in(variables.lines);
  if (columns != 0) {
    state.style.columns = columns;
  } else if (has_size && size.ws_col != 0) {
    state.style.columns = size.ws_col;
  }
  if (rows != 0) {
    state.style.rows = rows;
  } else if (has_size && size.ws_row != 0) {
    state.style.rows = size.ws_row;
  }
  state.can_redraw = state.is_terminal && !variables.term.empty() && variables.term != "dumb";
  state.style.colour = state.can_redraw && variables.no_color.empty();
  // The Linux console has 512 characters, without Braille.
  state.style.unicode =
      is_utf8(variables.locale) && variables.term != "dumb" && variables.term != "linux";
  return state;
}

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot write to standard output");
  }
}

Screen::Screen(bool is_used) : is_used_(is_used) { enter(); }

Screen::~Screen() { leave(); }

void Screen::enter() {
  if (is_used_ && !is_entered_) {
    is_entered_ = true;  // before the first byte, so that leave() undoes a partial write
    write_output(kEnter);
  }
}

void Screen::leave() noexcept {
  if (is_entered_) {
    is_entered_ = false;
    // An error is ignored: the terminal is gone, and nothing can be restored.
    std::fwrite(kLeave.data(), 1, kLeave.size(), stdout);
    std::fflush(stdout);
  }
}

void Screen::draw(const std::string& text, const TextStyle& style) {
  // Drawn over the old text and erased to the right: erasing all of it first would flicker.
  std::string out(kHome);
  std::string_view rest = text;
  for (std::size_t row = 0; row < style.rows && !rest.empty(); ++row) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    out += row == 0 ? "" : "\r\n";
    out += rest.substr(0, end);
    out += kEraseLine;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  write_output(out.append(kEraseFromCursor));
}

namespace {

// A process in the background must not use the terminal: reading it, or setting it up, would stop
// it.
bool is_in_foreground() { return tcgetpgrp(STDIN_FILENO) == getpgrp(); }

}  // namespace

void TerminalKeys::enter() noexcept {
  if (!is_used_ || !is_in_foreground() ||
      // Only the first time: afterwards the modes are those that this process has set.
      (!is_entered_ && tcgetattr(STDIN_FILENO, &before_) != 0)) {
    return;
  }
  termios modes = before_;
  modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // keys still send signals
  // read() returns with the first key.
  modes.c_cc[VMIN] = 1;
  modes.c_cc[VTIME] = 0;
  // Before the modes change, so that leave() restores them whatever happens.
  is_entered_ = true;
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

void TerminalKeys::leave() noexcept {
  if (is_entered_ && is_in_foreground()) {
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  is_entered_ = false;
}

int TerminalKeys::descriptor() const noexcept {
  // poll() ignores a negative descriptor.
  return is_entered_ && is_in_foreground() ? STDIN_FILENO : -1;
}

std::string TerminalKeys::take() {
  std::array<char, 64> buffer{};
  const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
  if (count <= 0) {
    is_used_ = false;  // the terminal has hung up
    leave();
    return {};
  }
  const std::string keys(buffer.data(), static_cast<std::size_t>(count));
  // An arrow or a function key sends an escape sequence, whose letters are no commands.
  return keys.substr(0, keys.find('\x1b'));
}

}  // namespace disttf::roles
