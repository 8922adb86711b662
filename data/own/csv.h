// Tables as text: CSV as RFC 4180 has it, or with semicolons, tabs or bars between the cells.
//
//   sepal_length,sepal_width,species
//   5.1,3.5,setosa
//
// One column is the label, the others are numbers. What separates cells and whether the first line
// has names is found out (table_head.h), and so is which column is the label: the one called label,
// class, target or species, in any case; else the last.
//
// Numbers are as in C, with a point; blanks around a cell do not count, empty lines neither. (A
// line of tabs is no empty one where these separate cells.)
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/own/row_source.h"

namespace disttf::data {

struct CsvOptions {
  std::string label_column{};  // a name, or a number from 1; empty: found out
  bool label_is_number = false;
  std::vector<std::string> ignored_columns{};  // the same; neither numbers nor label
  std::size_t skipped_lines = 0;               // at the beginning of the file
  std::size_t threads = 1;                     // that parse
  // Of the set's first file, label and all; none: this is the first.
  std::vector<std::string> known_names{};
};

// Throws UnusableData, and std::system_error where the file cannot be read.
[[nodiscard]] std::unique_ptr<RowSource> open_csv(const std::filesystem::path& path,
                                                  const CsvOptions& options);

// The same in pieces of so many bytes, for tests.
[[nodiscard]] std::unique_ptr<RowSource> open_csv(const std::filesystem::path& path,
                                                  const CsvOptions& options,
                                                  std::size_t piece_bytes);

}  // namespace disttf::data
