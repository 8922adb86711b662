// docs/flags.md, whose tables are made of the flags themselves.
//
//   <!-- flags: launch, Training -->
//
// says of which command, or commands, and of which group of its --help the table below it is.
#pragma once

#include <string>

namespace disttf {

// The document as it lies in the source tree.
[[nodiscard]] std::string read_flag_document();

// It with every table made anew. Throws std::invalid_argument where a mark names no command, or a
// group without flags.
[[nodiscard]] std::string with_tables(const std::string& document);

}  // namespace disttf
