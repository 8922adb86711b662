#include "run/monitor/shell/terminal_keys.h"

#include <unistd.h>

#include <array>

namespace disttf::roles {
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
