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
// Nothing but the classes of a label table is copied: what is found points into the bytes given.
// `detail` gets "expected ..., found ..." for the sentence that the caller makes of it. On error
// `out` is untouched.
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
  std::array<std::uint32_t, 4> sizes{};    // the first `dimensions` of them count
  std::span<const std::uint8_t> elements;  // exactly their product
};

[[nodiscard]] std::error_code parse_idx(std::span<const std::uint8_t> bytes, IdxView& out,
                                        std::string& detail);

// How long a file of bytes is that begins with `head`, header and all; the largest number there is
// where more of the header is needed, 0 where it is none.
[[nodiscard]] std::uint64_t idx_file_bytes(std::span<const std::uint8_t> head) noexcept;

// An image file: [rows, height, width], and a fourth size, the channels, where there are several.
// `images`: rows of shape.size() bytes.
[[nodiscard]] std::error_code parse_images(std::span<const std::uint8_t> bytes,
                                           const ImageShape& shape,
                                           std::span<const std::uint8_t>& images,
                                           std::string& detail);

// A label file: [rows], every label below `classes`.
[[nodiscard]] std::error_code parse_labels(std::span<const std::uint8_t> bytes, std::size_t classes,
                                           std::span<const std::uint8_t>& labels,
                                           std::string& detail);

// A label table, as QMNIST has: [rows, columns] of 32-bit integers, of which the first of a row is
// the class, below `classes`; the others (who wrote the digit, say) are not looked at. `labels`:
// the classes. REQUIRES: columns > 0; classes <= 256.
[[nodiscard]] std::error_code parse_label_table(std::span<const std::uint8_t> bytes,
                                                std::size_t columns, std::size_t classes,
                                                std::vector<std::uint8_t>& labels,
                                                std::string& detail);

// The headers of such files.
[[nodiscard]] std::vector<std::uint8_t> images_header(std::uint32_t rows, const ImageShape& shape);
[[nodiscard]] std::vector<std::uint8_t> labels_header(std::uint32_t rows);
[[nodiscard]] std::vector<std::uint8_t> label_table_header(std::uint32_t rows,
                                                           std::uint32_t columns);

}  // namespace disttf::data
