// The log: one line per event on standard error, as text or as JSON. Standard output is for
// results. Logging never waits for a reader of either (run/process/buffered_sink.h).
//
// spdlog is hidden behind this header because it is slow to compile. Call set_up_log() once in main
// before any thread is started; the other functions may then be called from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "run/effects.h"
#include "run/process/buffered_sink.h"

namespace disttf::roles {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat : std::uint8_t { kText, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  std::string task;       // "worker:1"; in JSON lines, and in text lines if `name_task`
  bool name_task = true;  // false under `launch`, which writes the prefix itself
  // TERM names a terminal with a movable cursor.
  bool can_redraw = false;
};

void set_up_log(const LogOptions& options);

[[nodiscard]] LogFormat log_format() noexcept;
[[nodiscard]] bool log_can_redraw() noexcept;  // LogOptions::can_redraw

// Formats a log line of another task as JSON, without its newline.
[[nodiscard]] std::string json_log_line(LogLevel level, std::string_view task,
                                        std::string_view message);
// Returns whether it is one: an object with these four keys.
[[nodiscard]] bool is_json_log_line(std::string_view line);

void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);
// Logs a core's note.
void log_note(const Note& note);
// Logs its message as an error.
void log_exception(const std::exception_ptr& exception);

// Prints a result line on standard output, which scripts read. No line is ever dropped.
void print_result(std::string_view line);

// The same for a result that was written to the file `output`; goes to the log if that file is
// standard output itself, which is to have only the result.
void print_written(std::string_view line, const std::filesystem::path& output);

// The sinks of both, for a console that shares them. Valid after set_up_log().
[[nodiscard]] BufferedSink& standard_output();
[[nodiscard]] BufferedSink& standard_error();
// At the end of the process: waits until all results are read, and for a limited time for the log.
// A signal ends the process meanwhile. Returns the exit code of the process: `exit_code`, or kError
// instead of kDone if standard output did not accept everything that print_result() or stdio has
// written to it (a full disk, a closed pipe, a limit on file sizes); the log reports that.
[[nodiscard]] int finish_output(int exit_code);

}  // namespace disttf::roles
