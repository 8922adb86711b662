// IDX, the file format of MNIST: a header, then the elements in row-major order.
//
//   offset  size  field
//        0     2  zero
//        2     1  element type: 0x08 = unsigned byte, the only one read here
//        3     1  number of dimensions d: 3 for images, 1 for labels, nothing else read here
//        4    4d  size of each dimension, unsigned 32-bit, big-endian
//     4+4d     n  elements; n = the product of the sizes, and the file ends there
//
// Nothing is copied: what is found points into the bytes given. `detail` gets "expected ...,
// found ..." for the sentence that the caller makes of it. On error `out` is untouched.
// Pure functions; callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace disttf::data {

inline constexpr std::size_t kIdxImagesHeaderBytes = 16;
inline constexpr std::size_t kIdxLabelsHeaderBytes = 8;

struct IdxView {
  std::size_t dimensions = 0;              // 1 or 3
  std::array<std::uint32_t, 3> sizes{};    // the first `dimensions` of them count
  std::span<const std::uint8_t> elements;  // exactly their product
};

[[nodiscard]] std::error_code parse_idx(std::span<const std::uint8_t> bytes, IdxView& out,
                                        std::string& detail);

// An image file: [rows, 28, 28]. `images`: [rows, 784] bytes.
[[nodiscard]] std::error_code parse_images(std::span<const std::uint8_t> bytes,
                                           std::span<const std::uint8_t>& images,
                                           std::string& detail);

// A label file: [rows], every label 0..9.
[[nodiscard]] std::error_code parse_labels(std::span<const std::uint8_t> bytes,
                                           std::span<const std::uint8_t>& labels,
                                           std::string& detail);

// The headers of the files that we write.
[[nodiscard]] std::array<std::uint8_t, kIdxImagesHeaderBytes> images_header(std::uint32_t rows);
[[nodiscard]] std::array<std::uint8_t, kIdxLabelsHeaderBytes> labels_header(std::uint32_t rows);

}  // namespace disttf::data
