// A user's own images as IDX files, in MNIST's format: a folder with four files, each extracted or
// as .gz, whose names give their meaning:
//
//   images   ...images...idx3-ubyte (idx4-ubyte with channels)   [rows, height, width(, channels)]
//   labels   ...labels...idx1-ubyte                              [rows]
//
// A file with the word test or t10k belongs to the test part, one with the word train to the
// training part. All images have the same shape. The classes are the labels that occur
// (class_name.h), in order, each named by its number: labels from 1 to 26 give 26 classes.
// Validation rows are held out of the training rows.
#pragma once

#include <filesystem>
#include <functional>

#include "data/dataset.h"
#include "data/own/hold_out.h"

namespace disttf::data {

// Returns whether the folder contains such files.
[[nodiscard]] bool has_idx_files(const std::filesystem::path& directory);

// Reads the files into memory; a .gz is decompressed only up to the size in its IDX header. `name`
// is Dataset::name. Calls `on_block` repeatedly; it may throw. Throws UnusableData, and
// std::system_error if a file cannot be read. The test share of `hold_out` is ignored.
[[nodiscard]] Dataset open_idx_folder(const std::filesystem::path& directory, std::string name,
                                      HoldOut hold_out, const std::function<void()>& on_block = {});

}  // namespace disttf::data
