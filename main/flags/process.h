// The flags of a process that have nothing to do with its role: log, confinement, testing, and what
// the process inherits from the one that started it.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

#include "run/process/log.h"

namespace disttf {

struct LogFlags {
  std::string level = "info";
  std::string format = "text";

  void add_to(CLI::App& app);
  [[nodiscard]] roles::LogOptions options() const;
};

// --confine
void add_confine(CLI::App& app, bool& confine);

// Fault injection.
struct TestingFlags {
  std::uint64_t debug_delay_ms = 0;
  std::string chaos_frames;    // empty: none
  std::string debug_attempts;  // the same; at commas

  void add_to(CLI::App& app);
};

// Hidden flags that launch and server pass to the tasks that they start.
struct InheritedFlags {
  int listen_fd = -1;
  int progress_fd = -1;

  void add_listen_fd(CLI::App& app);
  void add_to(CLI::App& app);
  [[nodiscard]] bool is_child() const { return listen_fd >= 0; }
};

}  // namespace disttf
