#include "data/idx.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "data/error.h"

namespace disttf::data {
namespace {

constexpr std::size_t kMagicBytes = 4;

// The element type and the dimensions that a kind of file may have.
struct Format {
  std::uint8_t type = 0;
  std::size_t element_bytes = 0;
  std::string_view type_name;
  std::string_view dimensions;  // the allowed ones, for error messages
  bool (*allows)(std::uint8_t dimensions) = nullptr;
};

constexpr Format kBytes{.type = 0x08,
                        .element_bytes = 1,
                        .type_name = "unsigned byte",
                        .dimensions = "1, 3 or 4",
                        .allows = [](std::uint8_t dimensions) {
                          return dimensions == 1 || dimensions == 3 || dimensions == 4;
                        }};

constexpr Format kIntegerTable{.type = 0x0C,
                               .element_bytes = 4,
                               .type_name = "32-bit integer",
                               .dimensions = "2",
                               .allows = [](std::uint8_t dimensions) { return dimensions == 2; }};

std::uint32_t read_big_endian(std::span<const std::uint8_t> bytes) noexcept {
  return std::uint32_t{bytes[0]} << 24U | std::uint32_t{bytes[1]} << 16U |
         std::uint32_t{bytes[2]} << 8U | std::uint32_t{bytes[3]};
}

std::vector<std::uint8_t> header(const Format& format, std::span<const std::uint32_t> sizes) {
  std::vector<std::uint8_t> bytes{0, 0, format.type, static_cast<std::uint8_t>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
      bytes.push_back(static_cast<std::uint8_t>(size >> shift));
    }
  }
  return bytes;
}

// Returns the sizes for a file of `rows` images.
std::vector<std::uint32_t> image_sizes(std::uint32_t rows, const ImageShape& shape) {
  std::vector<std::uint32_t> sizes{rows, static_cast<std::uint32_t>(shape.height),
                                   static_cast<std::uint32_t>(shape.width)};
  // MNIST's files have three dimensions, so a single channel has no fourth.
  if (shape.channels > 1) sizes.push_back(static_cast<std::uint32_t>(shape.channels));
  return sizes;
}

std::string byte_count(std::uint64_t count) { return std::to_string(count) + " bytes"; }

std::string shape_text(std::span<const std::uint32_t> sizes, std::string text) {
  for (const std::uint32_t size : sizes) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

std::string shape_text(const IdxView& view) {
  return shape_text(std::span(view.sizes).first(view.dimensions), "[");
}

std::error_code check_magic(const Format& format, std::span<const std::uint8_t> bytes,
                            std::string& detail) {
  if (bytes.size() < kMagicBytes) {
    detail = sentence("a header of at least 8 bytes", byte_count(bytes.size()));
    return DataError::kIdxTruncated;
  }
  if (bytes[0] != 0 || bytes[1] != 0) {
    detail = sentence("two zero bytes at the start",
                      std::to_string(bytes[0]) + " and " + std::to_string(bytes[1]));
    return DataError::kIdxBadMagic;
  }
  if (bytes[2] != format.type) {
    detail = sentence(
        "element type " + std::to_string(format.type) + " (" + std::string(format.type_name) + ")",
        "type " + std::to_string(bytes[2]));
    return DataError::kIdxBadType;
  }
  if (!format.allows(bytes[3])) {
    detail = sentence(std::string(format.dimensions) + " dimensions", std::to_string(bytes[3]));
    return DataError::kIdxBadShape;
  }
  return {};
}

// Computes the bytes of all elements; returns false if they exceed any possible memory. Division
// prevents an overflow, so sizes like 2^32-1 three times cannot wrap around to a small number.
bool count_bytes(const Format& format, const IdxView& view, std::size_t& count) {
  constexpr std::size_t kMost = PTRDIFF_MAX;
  count = format.element_bytes;
  bool overflow = false;
  for (std::size_t i = 0; i < view.dimensions; ++i) {
    // A size of 0 makes the product 0, even if the other sizes would overflow.
    if (view.sizes[i] == 0) {
      count = 0;
      return true;
    }
    overflow = overflow || count > kMost / view.sizes[i];
    if (!overflow) count *= view.sizes[i];
  }
  return !overflow;
}

// Sets `out.elements` to the bytes of the elements.
std::error_code parse_as(const Format& format, std::span<const std::uint8_t> bytes, IdxView& out,
                         std::string& detail) {
  // check_magic() bounds the dimensions, so `sizes` has room for them.
  if (const std::error_code error = check_magic(format, bytes, detail)) return error;
  IdxView view;
  view.dimensions = bytes[3];
  const std::size_t header_bytes = kMagicBytes + 4 * view.dimensions;
  if (bytes.size() < header_bytes) {
    detail = sentence("a header of " + byte_count(header_bytes), byte_count(bytes.size()));
    return DataError::kIdxTruncated;
  }
  for (std::size_t i = 0; i < view.dimensions; ++i) {
    view.sizes[i] = read_big_endian(bytes.subspan(kMagicBytes + 4 * i, 4));
  }
  const std::span<const std::uint8_t> rest = bytes.subspan(header_bytes);
  std::size_t count = 0;
  const bool countable = count_bytes(format, view, count);
  // The length must match exactly: trailing bytes show a wrong header or a damaged file.
  if (!countable || rest.size() != count) {
    detail = sentence((countable ? byte_count(count) : "more bytes than fit memory") +
                          " for shape " + shape_text(view) + " after the header",
                      byte_count(rest.size()));
    return !countable || rest.size() < count ? DataError::kIdxTruncated
                                             : DataError::kIdxTrailingBytes;
  }
  view.elements = rest;
  out = view;
  return {};
}

std::error_code bad_label(std::size_t classes, std::int64_t found, std::size_t row,
                          std::string& detail) {
  detail = sentence("labels 0 to " + std::to_string(classes - 1),
                    std::to_string(found) + " in row " + std::to_string(row));
  return DataError::kBadLabel;
}

}  // namespace

std::error_code parse_idx(std::span<const std::uint8_t> bytes, IdxView& out, std::string& detail) {
  return parse_as(kBytes, bytes, out, detail);
}

std::uint64_t idx_file_bytes(std::span<const std::uint8_t> head) noexcept {
  constexpr std::uint64_t kUnknown = UINT64_MAX;
  if (head.size() < kMagicBytes) return kUnknown;
  // 0 stops the decompression at once, and the parser then reports the wrong header.
  if (head[0] != 0 || head[1] != 0 || head[2] != kBytes.type || !kBytes.allows(head[3])) return 0;
  IdxView view;
  view.dimensions = head[3];
  const std::size_t header_bytes = kMagicBytes + 4 * view.dimensions;
  if (head.size() < header_bytes) return kUnknown;
  for (std::size_t i = 0; i < view.dimensions; ++i) {
    view.sizes.at(i) = read_big_endian(head.subspan(kMagicBytes + 4 * i, 4));
  }
  std::size_t count = 0;
  return count_bytes(kBytes, view, count) ? header_bytes + count : kUnknown;
}

std::error_code parse_images(std::span<const std::uint8_t> bytes, const ImageShape& shape,
                             std::span<const std::uint8_t>& images, std::string& detail) {
  IdxView view;
  if (const std::error_code error = parse_idx(bytes, view, detail)) return error;
  // The rows may be any number; the shape of an image may not.
  const std::vector<std::uint32_t> expected = image_sizes(view.sizes[0], shape);
  if (!std::ranges::equal(expected, std::span(view.sizes).first(view.dimensions))) {
    detail = sentence("images, shape " + shape_text(std::span(expected).subspan(1), "[rows"),
                      shape_text(view));
    return DataError::kIdxBadShape;
  }
  images = view.elements;
  return {};
}

std::error_code parse_labels(std::span<const std::uint8_t> bytes, std::size_t classes,
                             std::span<const std::uint8_t>& labels, std::string& detail) {
  IdxView view;
  if (const std::error_code error = parse_idx(bytes, view, detail)) return error;
  // The format of bytes also allows images.
  if (view.dimensions != 1) {
    detail = sentence("labels, shape [rows]", shape_text(view));
    return DataError::kIdxBadShape;
  }
  const auto* const bad =
      std::find_if(view.elements.data(), view.elements.data() + view.elements.size(),
                   [classes](std::uint8_t label) { return label >= classes; });
  if (bad != view.elements.data() + view.elements.size()) {
    return bad_label(classes, *bad, static_cast<std::size_t>(bad - view.elements.data()), detail);
  }
  labels = view.elements;
  return {};
}

std::error_code parse_label_table(std::span<const std::uint8_t> bytes, std::size_t columns,
                                  std::size_t classes, std::vector<std::uint8_t>& labels,
                                  std::string& detail) {
  assert(columns > 0 && classes <= 256);
  IdxView view;
  if (const std::error_code error = parse_as(kIntegerTable, bytes, view, detail)) return error;
  if (view.sizes[1] != columns) {
    detail = sentence("a table of labels, shape [rows, " + std::to_string(columns) + "]",
                      shape_text(view));
    return DataError::kIdxBadShape;
  }
  // The size is bounded by the file, because parse_as() has compared it with the header.
  std::vector<std::uint8_t> found(view.sizes[0]);
  const std::size_t row_bytes = columns * kIntegerTable.element_bytes;
  for (std::size_t row = 0; row < found.size(); ++row) {
    const std::uint32_t label = read_big_endian(view.elements.subspan(row * row_bytes, 4));
    if (label >= classes) {
      // Shown as signed, as the file's type is.
      return bad_label(classes, static_cast<std::int32_t>(label), row, detail);
    }
    found[row] = static_cast<std::uint8_t>(label);
  }
  labels = std::move(found);
  return {};
}

std::vector<std::uint8_t> images_header(std::uint32_t rows, const ImageShape& shape) {
  return header(kBytes, image_sizes(rows, shape));
}

std::vector<std::uint8_t> labels_header(std::uint32_t rows) { return header(kBytes, {&rows, 1}); }

std::vector<std::uint8_t> label_table_header(std::uint32_t rows, std::uint32_t columns) {
  return header(kIntegerTable, std::array{rows, columns});
}

}  // namespace disttf::data
