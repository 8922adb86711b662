// Where the launcher prints: lines of its children, and on a terminal one live line below them.
//
// Not thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace disttf::roles {

class Console {
 public:
  // The live line is drawn only when standard error is a terminal.
  Console();
  ~Console();  // removes the live line
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void print_output(std::string_view line);  // to standard output
  void print_error(std::string_view line);   // to standard error
  void draw_live(std::string line);          // replaces the live line

 private:
  void erase_live();
  void redraw_live();

  bool terminal_;
  std::string live_;
};

}  // namespace disttf::roles
