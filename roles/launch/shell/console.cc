#include "roles/launch/shell/console.h"

#include <unistd.h>

#include <utility>

#include "roles/launch/shell/child_process.h"

namespace disttf::roles {
namespace {

// Results are few; beyond this it is a program of the user's that prints, and can wait.
constexpr std::size_t kFullBytes = std::size_t{1} << 20U;

constexpr std::string_view kErase = "\r\x1b[K";  // carriage return, erase to the end of the line

}  // namespace

Console::Console() : terminal_(isatty(STDERR_FILENO) == 1 && log_format() == LogFormat::kText) {}

Console::~Console() { erase_live(); }

void Console::print_output(std::string_view line) {
  erase_live();
  standard_output().write(std::string(line) + "\n");
  redraw_live();
}

void Console::print_line_of(const net::TaskId& task, std::string_view line) {
  const std::string name = log_prefix(task);
  if (log_format() == LogFormat::kText) {
    print_error(name + " " + std::string(line));
  } else if (is_json_log_line(line)) {
    print_error(line);
  } else {
    print_error(json_log_line(LogLevel::kInfo, name.substr(1, name.size() - 2), line));
  }
}

void Console::say(const std::string& sentence, LogLevel level) {
  print_error(log_format() == LogFormat::kText ? "disttf launch: " + sentence
                                               : json_log_line(level, "launch", sentence));
}

void Console::print_error(std::string_view line) {
  erase_live();
  standard_error().write(std::string(line) + "\n");
  redraw_live();
}

void Console::draw_live(std::string line) {
  erase_live();
  live_ = std::move(line);
  redraw_live();
}

bool Console::is_output_full() { return standard_output().kept() >= kFullBytes; }

void Console::erase_live() {
  if (std::exchange(drawn_, false)) {
    standard_error().write(kErase);
  }
}

// A terminal that was stopped gets lines alone: they would be drawn over.
void Console::redraw_live() {
  if (terminal_ && !live_.empty() && standard_error().kept() == 0) {
    standard_error().write("\r" + live_ + std::string(kErase.substr(1)));
    drawn_ = true;
  }
}

}  // namespace disttf::roles
