// docs/flags.md, whose tables are generated from the flags.
//
//   <!-- flags: launch, Training -->
//
// names the command, or commands, and the group of its --help for the table below it.
#pragma once

#include <string>

namespace disttf {

// Returns the document from the source tree.
[[nodiscard]] std::string read_flag_document();

// Returns the document with every table regenerated. Throws std::invalid_argument if a mark names
// an unknown command, or a group without flags.
[[nodiscard]] std::string with_tables(const std::string& document);

}  // namespace disttf
