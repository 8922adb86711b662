// What the man pages, and in part --help, say besides commands and flags, as tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "main/flags.h"

namespace disttf {

struct Example {
  const char* line;  // as it is typed
  const char* what;
};

struct FileText {
  const char* name;
  const char* what;
};

// What a command reads of the environment.
enum class Reads : std::uint8_t { kCluster, kDownloads, kStores, kTerminal, kPath, kRuntime };

struct CommandText {
  Command command;
  const char* words;              // of its SYNOPSIS, before the flags
  const char* about;              // more than --help says of it
  std::vector<Example> examples;  // one at least; disttf(1) shows the first
  std::vector<FileText> files = {};
  std::vector<Reads> reads = {};
  std::vector<const char*> see_also = {};  // names of commands
};

// One for each of commands(), in any order.
[[nodiscard]] const std::vector<CommandText>& command_texts();
// That of a command.
[[nodiscard]] const CommandText& text_of(Command command);

struct VariableText {
  const char* names;  // one, or some that belong together, between commas
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
