// Reads single keys without Enter and without echo, if standard input is a terminal and this
// process is in its foreground. Otherwise there are no keys.
//
// Not thread-safe.
#pragma once

#include <termios.h>

#include <string>

namespace disttf::roles {

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
