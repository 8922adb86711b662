// Tables as text: CSV as RFC 4180 defines it, or with semicolons, tabs or bars between cells.
//
//   sepal_length,sepal_width,species
//   5.1,3.5,setosa
//
// One column is the label, the others are numbers. The separator and whether the first line
// contains names are detected (table_head.h). The label column is the one named label, class,
// target or species, in any case; otherwise the last.
//
// Numbers are as in C, with a point. Blanks around a cell and empty lines are ignored. (A line of
// tabs is not empty if tabs separate cells.)
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/own/row_source.h"

namespace disttf::data {

struct CsvOptions {
  std::string label_column{};  // a name, or a number from 1; empty: detect
  bool label_is_number = false;
  std::vector<std::string> ignored_columns{};  // the same form; neither numbers nor label
  std::size_t skipped_lines = 0;               // at the beginning of the file
  std::size_t threads = 1;                     // number of parsing threads
  // The names of the set's first file, including the label; empty: this is the first.
  std::vector<std::string> known_names{};
};

// Opens a table. Throws UnusableData, and std::system_error if the file cannot be read.
[[nodiscard]] std::unique_ptr<RowSource> open_csv(const std::filesystem::path& path,
                                                  const CsvOptions& options);

// The same, in pieces of `piece_bytes`, for tests.
[[nodiscard]] std::unique_ptr<RowSource> open_csv(const std::filesystem::path& path,
                                                  const CsvOptions& options,
                                                  std::size_t piece_bytes);

}  // namespace disttf::data
