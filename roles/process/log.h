// The log: one line per event on standard error, as text or as JSON. Standard output is for
// results. Nobody who logs waits for the reader of either (roles/process/patient_output.h).
//
// spdlog stays behind this header: it is slow to compile. Set up once in main before any thread
// is started; the functions may then be called from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "roles/process/patient_output.h"
#include "roles/run/note.h"

namespace disttf::roles {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat : std::uint8_t { kText, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  std::string task;       // "worker:1"; named in JSON lines, and in text lines when `name_task`
  bool name_task = true;  // false under `launch`, which writes the prefix itself
  // TERM names a terminal whose cursor can be moved.
  bool can_redraw = false;
};

void set_up_log(const LogOptions& options);

[[nodiscard]] LogFormat log_format() noexcept;
[[nodiscard]] bool log_can_redraw() noexcept;  // LogOptions::can_redraw

// A line of the log as JSON, of another task than this one; without its end.
[[nodiscard]] std::string json_log_line(LogLevel level, std::string_view task,
                                        std::string_view message);
// Whether it is one: an object with these four keys.
[[nodiscard]] bool is_json_log_line(std::string_view line);

void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);
// What a core has to say.
void log_note(const Note& note);
// What it says, as an error.
void log_exception(const std::exception_ptr& exception);

// A result line on standard output: what scripts read. None is ever left out.
void print_result(std::string_view line);

// The same of a result that was written to the file `output`; in the log where that is standard
// output itself, which is to have the result alone.
void print_written(std::string_view line, const std::filesystem::path& output);

// What the two are written to, for a console that shares them. From set_up_log() on.
[[nodiscard]] PatientOutput& standard_output();
[[nodiscard]] PatientOutput& standard_error();
// At the end of the process: waits until all results are read, and for a while for the log. A
// signal ends the process meanwhile. Returns the exit code of the process: `exit_code`, or kError
// in the place of kDone where standard output could not take all that was written to it, whether by
// print_result() or by stdio (a full disk, a closed pipe, a limit of file sizes). The log says so.
[[nodiscard]] int finish_output(int exit_code);

}  // namespace disttf::roles
