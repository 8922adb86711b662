// docs/flags.md, whose tables are generated from the flags.
//
//   <!-- flags: launch, Training -->
//
// names the command, or commands, and the group of its --help for the table below it.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace disttf {

inline constexpr const char* kFlagDocumentPath = DISTTF_SOURCE_DIR "/docs/flags.md";

inline std::string read_flag_document() {
  std::ifstream file(kFlagDocumentPath);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace disttf
