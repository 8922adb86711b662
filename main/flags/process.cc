#include "main/flags/process.h"

#include <CLI/CLI.hpp>
#include <map>

#include "main/flag_values.h"
#include "main/flags/flag_group.h"

namespace disttf {
namespace {

constexpr const char* kLog = "Log (standard error)";
constexpr const char* kConfinement = "Confinement";
constexpr const char* kTesting = "Testing";

}  // namespace

void LogFlags::add_to(CLI::App& app) {
  FlagGroup add(app, kLog);
  add.choice("--log_level", level, "NAME", {"debug", "info", "warning", "error", "off"},
             "least severe level to log: `debug`, `info`, `warning`, `error`, `off`");
  add.choice("--log_format", format, "NAME", {"text", "json"},
             "`json`: one object per line, also of `launch -- COMMAND`");
}

void add_confine(CLI::App& app, bool& confine) {
  FlagGroup add(app, kConfinement);
  add.toggle("--confine", confine,
             "[sandbox](operations.md#sandbox) the process with Landlock and "
             "seccomp, as far as the kernel supports them [true]");
}

void TestingFlags::add_to(CLI::App& app) {
  FlagGroup add(app, kTesting);
  add.number("--debug_delay_ms", debug_delay_ms, "N", 0, kDaySeconds,
             "delay each push by a random time of up to N ms");
  add.text("--chaos_frames", chaos_frames, "SEED,RATE",
           "`SEED,RATE`: drop, truncate, delay, repeat or reorder RATE of 1000 frames "
           "between trainers and ps, chosen by SEED")
      ->check(seed_and_rate());
  add.text("--debug_attempts", debug_attempts, "LIST",
           "list of `open:FILE`, `connect:ADDRESS:PORT` (IPv4) and `exec:PROGRAM` to try "
           "inside [the sandbox](operations.md#sandbox); the results are logged")
      ->check(attempts());
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
