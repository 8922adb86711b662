// A data set in memory, ready for training: images as bytes, or rows of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

// The shape of one image: rows of pixels, each of `channels` bytes (grey, or red, green, blue),
// channels last. The default is MNIST's.
struct ImageShape {
  std::size_t height = 28;
  std::size_t width = 28;
  std::size_t channels = 1;

  // Returns the bytes of one image, which is the input width of a model.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return height * width * channels; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// One part of a data set: [rows, height, width] (times channels) bytes 0..255 or that many floats,
// and [rows] labels below Dataset::classes. Borrowed from a Dataset.
struct Split {
  std::span<const std::uint8_t> images;
  std::span<const float> numbers{};  // used if there are no images
  std::span<const std::uint8_t> labels{};
  std::span<const float> targets{};  // [rows] numeric labels, used if there are no classes
  [[nodiscard]] std::size_t rows() const noexcept { return labels.size() + targets.size(); }
};

// Immutable after construction: any thread may read it.
struct Dataset {
  std::string name;         // "MNIST" or "Digits": the first word of the result line
  std::string checksum;     // identity: SHA-256 (hex) over the four extracted files in the order
                            // train images, train labels, test images, test labels: its identity;
                            // for a user's data see data/own/cache.h
  ImageShape shape{};       // of every image; {1, 1, columns} for rows of numbers
  std::size_t classes = 0;  // 0: labels are numbers
  std::span<const std::string_view> class_names{};  // borrowed; empty: 0, 1, 2, ...
  // The names of the numbers of a row, and of its label; views of `storage`. Empty for images.
  std::span<const std::string_view> column_names{};
  std::string_view label_name{};
  // Training uses (x - mean) * scale, by position in the row. Empty for images.
  std::span<const float> means{};
  std::span<const float> scales{};
  // Training uses (t - mean) * scale as the target.
  float target_mean = 0;
  float target_scale = 1;
  Split train;                          // MNIST: 55 000 rows
  Split validation;                     // 5 000
  Split test;                           // 10 000
  std::shared_ptr<const void> storage;  // the memory that the spans refer to
  // Problems found in a user's own data, one sentence each (data/own/findings.h).
  std::vector<std::string> findings{};
};

}  // namespace disttf::data
