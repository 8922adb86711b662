// A data set that is ready to train on, in memory: images as bytes, or rows of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

// What one image is: rows of pixels, each of `channels` bytes (grey; red, green, blue), channels
// last. The default is MNIST's.
struct ImageShape {
  std::size_t height = 28;
  std::size_t width = 28;
  std::size_t channels = 1;

  // Bytes of an image: what a model takes.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return height * width * channels; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// [rows, height, width, channels] bytes 0..255, or as many numbers, and [rows] labels below
// Dataset::classes. Borrowed from a Dataset.
struct Split {
  std::span<const std::uint8_t> images;
  std::span<const float> numbers{};  // where there are no images
  std::span<const std::uint8_t> labels{};
  std::span<const float> targets{};  // [rows] labels that are numbers, where there are no classes
  [[nodiscard]] std::size_t rows() const noexcept { return labels.size() + targets.size(); }
};

// Read-only after construction: any thread may read it.
struct Dataset {
  std::string name;         // "MNIST" or "Digits": the word of the result line
  std::string checksum;     // SHA-256 (hex) over the four extracted files' contents in the order
                            // train images, train labels, test images, test labels: its identity;
                            // of a user's data as data/own/cache.h has it
  ImageShape shape{};       // of every image; {1, 1, numbers of a row}
  std::size_t classes = 0;  // 0: labels are numbers
  std::span<const std::string_view> class_names{};  // of literals or `storage`; none: 0, 1, 2, ...
  // The names of a row's numbers, and of its label; of `storage`. None of images.
  std::span<const std::string_view> column_names{};
  std::string_view label_name{};
  // Of numbers: x is trained on as (x - mean) * scale, by its place in the row. None of images.
  std::span<const float> means{};
  std::span<const float> scales{};
  // Of targets: trained on as (t - mean) * scale.
  float target_mean = 0;
  float target_scale = 1;
  Split train;                          // MNIST: 55 000 rows
  Split validation;                     // 5 000
  Split test;                           // 10 000
  std::shared_ptr<const void> storage;  // the memory that the splits point into
  // What looks wrong with a user's own data, a sentence each (data/own/findings.h).
  std::vector<std::string> findings{};
};

}  // namespace disttf::data
