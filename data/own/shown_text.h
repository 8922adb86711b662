// External text (cells, file names, sentences that contain them) in a form that a log, a terminal
// or an error message can show safely.
//
// Pure functions; callable from any thread.
#pragma once

#include <string>
#include <string_view>

namespace disttf::data {

// Returns shown_text() (text/shown_text.h) of the first 60 bytes; a longer text ends in "...".
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace disttf::data
