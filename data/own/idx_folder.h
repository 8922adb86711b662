// Images of a user's own as IDX files, the form that MNIST and its kin have: a folder with four of
// them, each extracted or as .gz, whose names say what they are:
//
//   images   ...images...idx3-ubyte, or idx4-ubyte with channels     [rows, height, width(,
//   channels)] labels   ...labels...idx1-ubyte                                  [rows]
//
// With the word test or t10k a file is of the test, with the word train it is trained on. All
// images have one shape. The classes are the labels that occur (class_name.h), in order, each
// called as its number: of labels from 1 to 26 there are 26 classes. Rows for validation are held
// out of those that are trained on.
#pragma once

#include <filesystem>
#include <functional>

#include "data/dataset.h"
#include "data/own/hold_out.h"

namespace disttf::data {

// Whether there are such files in it.
[[nodiscard]] bool has_idx_files(const std::filesystem::path& directory);

// Reads them into memory, a .gz no further than its header says that it goes; `name` is
// Dataset::name. `on_block` is called again and again meanwhile, and may throw. Throws
// UnusableData, and std::system_error where a file cannot be read. `hold_out`: its share for the
// test does not count.
[[nodiscard]] Dataset open_idx_folder(const std::filesystem::path& directory, std::string name,
                                      HoldOut hold_out, const std::function<void()>& on_block = {});

}  // namespace disttf::data
