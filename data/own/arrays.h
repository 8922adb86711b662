// NumPy arrays as a data set: an .npz with several arrays, or a folder with .npy files. The names
// give their meaning, with the conventions of Keras, MedMNIST and scikit-learn:
//
//   examples   x, data, images or features
//   labels     y, label, labels, target or targets
//
// Names are case-insensitive. The part (train; val, valid or validation; test) may come before or
// after, separated by _, -, a point or a blank. Examples are x_train, y_train, x_test, y_test; the
// plain names X and y have no part, and their rows are split among the parts. Other arrays are
// ignored.
//
// Examples are images if they are bytes of rank 3 or 4, [rows, height, width(, channels)], and rows
// of numbers if they have rank 2. Labels have rank 1, or rank 2 with one column.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/own/hold_out.h"
#include "data/own/row_source.h"

namespace disttf::data {

// The location of one array: a file, or a member of an archive.
struct ArrayLocation {
  std::filesystem::path path;
  std::string entry;  // member of the archive; empty: the file itself
  std::uint64_t bytes = 0;

  // "mnist.npz: x_train.npy"
  [[nodiscard]] std::string text() const;
};

// The two arrays of one part.
struct ArrayPair {
  std::optional<Part> part;  // none: its rows are split among the parts
  ArrayLocation examples;
  ArrayLocation labels;
};

// Returns the arrays of an archive, the training part first. Throws UnusableData if no array has a
// recognized name.
[[nodiscard]] std::vector<ArrayPair> arrays_of_archive(const std::filesystem::path& path);
// Does the same for a folder, but returns nothing if no .npy file has a recognized name.
[[nodiscard]] std::vector<ArrayPair> arrays_in_folder(const std::filesystem::path& directory);

// Returns whether the examples are images. Reads the header; throws as open_arrays() does.
[[nodiscard]] bool are_images(const ArrayLocation& examples);

// Opens the two arrays of a part. Columns are numbered from 1. Throws UnusableData, and
// std::system_error if a file cannot be read.
[[nodiscard]] std::unique_ptr<RowSource> open_arrays(const ArrayPair& arrays, bool label_is_number);

// The meaning of an array's name.
struct ArrayName {
  bool is_examples = false;
  std::optional<Part> part;
  friend bool operator==(const ArrayName&, const ArrayName&) = default;
};
// Returns none if `name` is not a name of examples or labels.
[[nodiscard]] std::optional<ArrayName> parse_array_name(std::string_view name);

}  // namespace disttf::data
