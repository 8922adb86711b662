// The log: one line per event on standard error, as text or as JSON. Standard output is for
// results.
//
// spdlog stays behind this header: it is slow to compile. Set up once in main before any thread
// is started; the functions may then be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace disttf::roles {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat : std::uint8_t { kText, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  std::string task;       // "worker:1"; named in JSON lines, and in text lines when `name_task`
  bool name_task = true;  // false under `launch`, which writes the prefix itself
};

void set_up_log(const LogOptions& options);

void log_debug(std::string_view message);
void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);

// A result line on standard output, flushed: what scripts read.
void print_result(std::string_view line);

}  // namespace disttf::roles
