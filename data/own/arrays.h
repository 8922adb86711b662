// Arrays of NumPy's as a data set: an .npz with several, or a folder with an .npy each, whose names
// say what they are, as Keras, MedMNIST and scikit-learn have them:
//
//   examples   x, data, images or features
//   labels     y, label, labels, target or targets
//
// in any case; and before or behind it, with one of _-. and blanks between, the part: train; val,
// valid or validation; test. x_train, y_train, x_test, y_test are such, and X and y alone, whose
// rows are shared out. Other arrays are left alone.
//
// Examples are images where they are bytes of rank 3 or 4, [rows, height, width(, channels)], and
// rows of numbers where they have rank 2. Labels have rank 1, or 2 with one column.
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

// Where one array is: a file, or in an archive.
struct ArrayPlace {
  std::filesystem::path path;
  std::string entry;  // of an archive; empty: the file itself
  std::uint64_t bytes = 0;

  // "mnist.npz: x_train.npy"
  [[nodiscard]] std::string text() const;
};

// The two of one part.
struct ArrayPair {
  std::optional<Part> part;  // none: its rows are shared out
  ArrayPlace examples;
  ArrayPlace labels;
};

// Of an archive. To train on first. Throws UnusableData where it has none that are called so.
[[nodiscard]] std::vector<ArrayPair> arrays_of_archive(const std::filesystem::path& path);
// The same of a folder; but none where no .npy file in it is called so.
[[nodiscard]] std::vector<ArrayPair> arrays_in_folder(const std::filesystem::path& directory);

// Whether the examples are images. Reads the header; throws as open_arrays() does.
[[nodiscard]] bool are_images(const ArrayPlace& examples);

// Columns are numbered from 1. Throws UnusableData, and std::system_error where it cannot be read.
[[nodiscard]] std::unique_ptr<RowSource> open_arrays(const ArrayPair& arrays, bool label_is_number);

// What a name says. None: it is no name of examples or labels.
struct ArrayName {
  bool is_examples = false;
  std::optional<Part> part;
  friend bool operator==(const ArrayName&, const ArrayName&) = default;
};
[[nodiscard]] std::optional<ArrayName> parse_array_name(std::string_view name);

}  // namespace disttf::data
