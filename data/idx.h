// IDX, the file format of MNIST: a header, then the elements in row-major order.
//
//   offset  size  field
//        0     2  zero
//        2     1  element type: 0x08 = unsigned byte; 0x0C = signed 32-bit, big-endian, read in
//                 label tables alone
//        3     1  number of dimensions d: 3 for images, 4 where a pixel has several bytes, 1 for
//                 labels, 2 for label tables, nothing else read here
//        4    4d  size of each dimension, unsigned 32-bit, big-endian
//     4+4d     n  elements; n = the product of the sizes and of an element's bytes, and the file
//                 ends there
//
// Only the classes of a label table are copied: all other results point into the given bytes.
// `detail` receives "expected ..., found ..." for the caller's error message. On error `out` is
// unchanged.
// Pure functions; callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "data/dataset.h"

namespace disttf::data {

struct IdxView {
  std::size_t dimensions = 0;              // 1, 3 or 4
  std::array<std::uint32_t, 4> sizes{};    // only the first `dimensions` count
  std::span<const std::uint8_t> elements;  // as many as the product of the sizes
};

[[nodiscard]] std::error_code parse_idx(std::span<const std::uint8_t> bytes, IdxView& out,
                                        std::string& detail);

// Returns the length of the byte file that begins with `head`, including the header. Returns the
// maximum of the type if more of the header is needed, and 0 if `head` is not an IDX header.
[[nodiscard]] std::uint64_t idx_file_bytes(std::span<const std::uint8_t> head) noexcept;

// Parses an image file: [rows, height, width], with channels as a fourth size if there are several.
// `images` receives rows of shape.size() bytes.
[[nodiscard]] std::error_code parse_images(std::span<const std::uint8_t> bytes,
                                           const ImageShape& shape,
                                           std::span<const std::uint8_t>& images,
                                           std::string& detail);

// Parses a label file: [rows], every label below `classes`.
[[nodiscard]] std::error_code parse_labels(std::span<const std::uint8_t> bytes, std::size_t classes,
                                           std::span<const std::uint8_t>& labels,
                                           std::string& detail);

// Parses a label table, as in QMNIST: [rows, columns] of 32-bit integers. The first integer of a
// row is the class and must be below `classes`; the others (such as the writer of the digit) are
// ignored. `labels` receives the classes. REQUIRES: columns > 0; classes <= 256.
[[nodiscard]] std::error_code parse_label_table(std::span<const std::uint8_t> bytes,
                                                std::size_t columns, std::size_t classes,
                                                std::vector<std::uint8_t>& labels,
                                                std::string& detail);

// Returns the header of a file of that kind.
[[nodiscard]] std::vector<std::uint8_t> images_header(std::uint32_t rows, const ImageShape& shape);
[[nodiscard]] std::vector<std::uint8_t> labels_header(std::uint32_t rows);
[[nodiscard]] std::vector<std::uint8_t> label_table_header(std::uint32_t rows,
                                                           std::uint32_t columns);

}  // namespace disttf::data
