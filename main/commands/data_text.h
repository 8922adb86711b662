// The text of `disttf data inspect`: a user's own data, and what looks wrong in it.
#pragma once

#include <string>

#include "data/own/own_data.h"

namespace disttf {

// The text to print, ending with a newline. Of a table: columns, classes and first rows. Of images:
// classes, and the first image in blocks. Both: what looks wrong.
[[nodiscard]] std::string data_text(const data::OpenedOwnData& data);
// The same as one JSON object.
[[nodiscard]] std::string data_json(const data::OpenedOwnData& data);

}  // namespace disttf
