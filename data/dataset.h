// A data set that is ready to train on: images as bytes, in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace disttf::data {

inline constexpr std::size_t kImageSide = 28;
inline constexpr std::size_t kImagePixels = kImageSide * kImageSide;  // 784
inline constexpr std::size_t kClasses = 10;
// TensorFlow's read_data_sets keeps the first 5 000 training rows for validation.
inline constexpr std::size_t kValidationRows = 5000;

// [rows, 784] bytes 0..255 and [rows] labels 0..9. Borrowed from a Dataset.
struct Split {
  std::span<const std::uint8_t> images;
  std::span<const std::uint8_t> labels;
};

// Read-only after construction: any thread may read it.
struct Dataset {
  std::string name;      // "MNIST" or "Digits": the word of the result line
  std::string checksum;  // SHA-256 (hex) over the four extracted files' contents in the order
                         // train images, train labels, test images, test labels: its identity
  Split train;           // 55 000 rows
  Split validation;      // 5 000
  Split test;            // 10 000
  std::shared_ptr<const void> storage;  // the memory that the splits point into
};

}  // namespace disttf::data
