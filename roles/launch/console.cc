#include "roles/launch/console.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace disttf::roles {
namespace {

void write_line(std::FILE* file, std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), file);
  std::fputc('\n', file);
  std::fflush(file);
}

}  // namespace

Console::Console() : terminal_(isatty(STDERR_FILENO) == 1) {}

Console::~Console() { erase_live(); }

void Console::print_output(std::string_view line) {
  erase_live();
  write_line(stdout, line);
  redraw_live();
}

void Console::print_error(std::string_view line) {
  erase_live();
  write_line(stderr, line);
  redraw_live();
}

void Console::draw_live(std::string line) {
  erase_live();
  live_ = std::move(line);
  redraw_live();
}

void Console::erase_live() {
  if (terminal_ && !live_.empty()) {
    std::fputs("\r\x1b[K", stderr);  // carriage return, erase to the end of the line
    std::fflush(stderr);
  }
}

void Console::redraw_live() {
  if (terminal_ && !live_.empty()) {
    std::fprintf(stderr, "\r%s\x1b[K", live_.c_str());
    std::fflush(stderr);
  }
}

}  // namespace disttf::roles
