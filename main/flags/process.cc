#include "main/flags/process.h"

#include <CLI/CLI.hpp>
#include <map>

#include "main/flag_values.h"
#include "main/flags/group_names.h"

namespace disttf {
namespace {

constexpr const char* kLog = "Log (standard error)";
constexpr const char* kConfinement = "Confinement";
constexpr const char* kTesting = "Testing";

}  // namespace

void LogFlags::add_to(CLI::App& app) {
  app.add_option("--log_level", level,
                 "least severe level to log: `debug`, `info`, `warning`, `error`, `off`")
      ->type_name("NAME")
      ->check(one_of({"debug", "info", "warning", "error", "off"}))
      ->capture_default_str()
      ->group(kLog);
  app.add_option("--log_format", format, "`json`: one object per line, also of `launch -- COMMAND`")
      ->type_name("NAME")
      ->check(one_of({"text", "json"}))
      ->capture_default_str()
      ->group(kLog);
}

void add_confine(CLI::App& app, bool& confine) {
  app.add_flag("--confine", confine,
               "[sandbox](operations.md#sandbox) the process with Landlock and "
               "seccomp, as far as the kernel supports them [true]")
      ->transform(boolean())
      ->group(kConfinement);
}

void TestingFlags::add_to(CLI::App& app) {
  app.add_option("--debug_delay_ms", debug_delay_ms,
                 "delay each push by a random time of up to N ms")
      ->type_name("N")
      ->transform(whole_number(0, kDaySeconds))
      ->capture_default_str()
      ->group(kTesting);
  app.add_option("--chaos_frames", chaos_frames,
                 "`SEED,RATE`: drop, truncate, delay, repeat or reorder RATE of 1000 frames "
                 "between trainers and ps, chosen by SEED")
      ->type_name("SEED,RATE")
      ->check(seed_and_rate())
      ->group(kTesting);
  app.add_option("--debug_attempts", debug_attempts,
                 "list of `open:FILE`, `connect:ADDRESS:PORT` (IPv4) and `exec:PROGRAM` to try "
                 "inside [the sandbox](operations.md#sandbox); the results are logged")
      ->type_name("LIST")
      ->check(attempts())
      ->group(kTesting);
}

roles::LogOptions LogFlags::options() const {
  using roles::LogLevel;
  static const std::map<std::string, LogLevel> kLevels = {{"debug", LogLevel::kDebug},
                                                          {"info", LogLevel::kInfo},
                                                          {"warning", LogLevel::kWarning},
                                                          {"error", LogLevel::kError},
                                                          {"off", LogLevel::kOff}};
  return {.level = kLevels.at(level),
          .format = format == "json" ? roles::LogFormat::kJson : roles::LogFormat::kText,
          .task = {}};
}

void InheritedFlags::add_listen_fd(CLI::App& app) {
  app.add_option("--listen_fd", listen_fd)->group(kHiddenGroup);
}

void InheritedFlags::add_to(CLI::App& app) {
  add_listen_fd(app);
  app.add_option("--progress_fd", progress_fd)->group(kHiddenGroup);
}

}  // namespace disttf
