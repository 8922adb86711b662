// A table as text -> examples for a model: CSV with commas, semicolons, tabs or bars, as training
// reads them (data/own/table_head.h, class_name.h, text_encoding.h), so that a file that a model
// was trained on is one that it can be asked about. Columns are found by the names that the model
// was trained with where the first line has them, in any order, and others are left out; without a
// line of names a row has exactly the model's numbers, or all columns of a table that had no names
// either. A label where the table has one is what the answers are held against.
#pragma once

#include <string>
#include <string_view>

#include "roles/predict/core/example_reader.h"

namespace disttf::roles {

// Throws data::UnusableData with file, line and column.
[[nodiscard]] Examples read_table(std::string_view text, const std::string& name,
                                  const TrainedModel& model);

}  // namespace disttf::roles
