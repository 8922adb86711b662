// Parses a table of text into examples: CSV with commas, semicolons, tabs or bars, as training
// reads it (data/own/table_head.h, class_name.h, text_encoding.h), so a training file works for
// inference, too. Columns are matched by name where the first line has the training names, in any
// order; others are ignored. Without a line of names a row has exactly the model's numbers, or all
// columns of a table that was trained without names. Labels, if present, are compared with the
// answers.
#pragma once

#include <string>
#include <string_view>

#include "model/predict/example_reader.h"

namespace disttf::roles {

// Throws data::UnusableData with file, line and column.
[[nodiscard]] Examples read_table(std::string_view text, const std::string& name,
                                  const TrainedModel& model);

}  // namespace disttf::roles
