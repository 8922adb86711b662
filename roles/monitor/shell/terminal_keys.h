// Keys as they are pressed, without Enter and without being shown, where standard input is a
// terminal that this process has to itself: one in the foreground. Elsewhere there are none.
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

  // The terminal is as it was before; enter() begins again. Each may be called at any time: after
  // a stop, too, in which a shell has had the terminal.
  void leave() noexcept;
  void enter() noexcept;

  // A descriptor for poll(); -1: no key can come now.
  [[nodiscard]] int descriptor() const noexcept;
  // To be called when poll() says so. Without keys that are no letter, which come as an escape and
  // letters.
  [[nodiscard]] std::string take();

 private:
  bool is_used_;
  bool is_entered_ = false;
  termios before_{};  // where it is entered
};

}  // namespace disttf::roles
