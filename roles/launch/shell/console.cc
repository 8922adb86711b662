#include "roles/launch/shell/console.h"

#include <unistd.h>

#include <utility>

#include "roles/launch/shell/child_process.h"

namespace disttf::roles {
namespace {

// Results are few. Beyond this size a user's program prints, and can wait.
constexpr std::size_t kFullBytes = std::size_t{1} << 20U;

}  // namespace

Console::Console()
    : terminal_(isatty(STDERR_FILENO) == 1 && log_format() == LogFormat::kText &&
                log_can_redraw()) {}

Console::~Console() { draw_live({}); }

void Console::print_output(std::string_view line) {
  // The live line is on standard error, which may be the same terminal.
  // Takes the live line away first: the result would be appended to it otherwise.
  if (terminal_) {
    standard_error().set_live_line({});
  }
  standard_output().write(std::string(line) + "\n");
  if (terminal_) {
    standard_error().set_live_line(live_);
  }
}

void Console::print_line_of(const net::TaskId& task, std::string_view line) {
  const std::string name = log_prefix(task);
  if (log_format() == LogFormat::kText) {
    print_error(name + " " + std::string(line));
  } else if (is_json_log_line(line)) {
    // A task that logs JSON itself is passed through: a second envelope would hide its fields.
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
  standard_error().write(std::string(line) + "\n");
}

void Console::draw_live(std::string line) {
  live_ = std::move(line);
  if (terminal_) {
    standard_error().set_live_line(live_);
  }
}

bool Console::is_output_full() { return standard_output().kept() >= kFullBytes; }

}  // namespace disttf::roles
