// What the man pages, and in part --help, say besides commands and flags, as tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "main/flags.h"

namespace disttf {

struct Example {
  const char* line;  // the command line
  const char* what;
};

struct FileText {
  const char* name;
  const char* what;
};

// The kinds of environment variables that a command reads.
enum class Reads : std::uint8_t {
  kCluster,
  kDownloads,
  kStores,
  kTerminal,
  kPath,
  kGpus,
  kRuntime
};

struct CommandText {
  Command command;
  const char* words;              // of its SYNOPSIS, before the flags
  const char* about;              // a description beyond that of --help
  std::vector<Example> examples;  // at least one; disttf(1) shows the first
  std::vector<FileText> files = {};
  std::vector<Reads> reads = {};
  std::vector<const char*> see_also = {};  // names of commands
};

// One for each of commands(), in any order.
[[nodiscard]] const std::vector<CommandText>& command_texts();
// That of a command.
[[nodiscard]] const CommandText& text_of(Command command);

struct VariableText {
  const char* names;  // one, or several that belong together, separated by commas
  Reads read_as;
  const char* what;
};
[[nodiscard]] std::span<const VariableText> variable_texts();

struct ExitText {
  int code;
  const char* what;
};
[[nodiscard]] std::span<const ExitText> exit_texts();

}  // namespace disttf
