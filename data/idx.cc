#include "data/idx.h"

#include <algorithm>
#include <initializer_list>

#include "data/dataset.h"
#include "data/error.h"

namespace disttf::data {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr std::size_t kMagicBytes = 4;

std::uint32_t read_big_endian(std::span<const std::uint8_t> bytes) noexcept {
  return std::uint32_t{bytes[0]} << 24U | std::uint32_t{bytes[1]} << 16U |
         std::uint32_t{bytes[2]} << 8U | std::uint32_t{bytes[3]};
}

void write_header(std::span<std::uint8_t> out, std::initializer_list<std::uint32_t> sizes) {
  std::uint8_t* next = out.data();
  *next++ = 0;
  *next++ = 0;
  *next++ = kUnsignedByte;
  *next++ = static_cast<std::uint8_t>(sizes.size());
  for (const std::uint32_t size : sizes) {
    for (unsigned shift = 32; shift > 0;) {
      shift -= 8;
      *next++ = static_cast<std::uint8_t>(size >> shift);
    }
  }
}

std::string byte_count(std::uint64_t count) { return std::to_string(count) + " bytes"; }

std::string shape_text(const IdxView& view) {
  std::string text = "[";
  for (std::size_t i = 0; i < view.dimensions; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(view.sizes[i]);
  }
  return text + "]";
}

std::error_code check_magic(std::span<const std::uint8_t> bytes, std::string& detail) {
  if (bytes.size() < kMagicBytes) {
    detail = sentence("a header of at least 8 bytes", byte_count(bytes.size()));
    return DataError::kIdxTruncated;
  }
  if (bytes[0] != 0 || bytes[1] != 0) {
    detail = sentence("two zero bytes at the start",
                      std::to_string(bytes[0]) + " and " + std::to_string(bytes[1]));
    return DataError::kIdxBadMagic;
  }
  if (bytes[2] != kUnsignedByte) {
    detail = sentence("element type 8 (unsigned byte)", "type " + std::to_string(bytes[2]));
    return DataError::kIdxBadType;
  }
  if (bytes[3] != 1 && bytes[3] != 3) {
    detail = sentence("1 or 3 dimensions", std::to_string(bytes[3]));
    return DataError::kIdxBadShape;
  }
  return {};
}

// The number of elements, and whether it is so large that no file in memory can hold it. Computed
// by division, so that sizes like 2^32-1 three times over cannot wrap around to something small.
bool count_elements(const IdxView& view, std::size_t& count) {
  constexpr std::size_t kMost = PTRDIFF_MAX;
  count = 1;
  bool overflow = false;
  for (std::size_t i = 0; i < view.dimensions; ++i) {
    if (view.sizes[i] == 0) {
      count = 0;
      return true;
    }
    overflow = overflow || count > kMost / view.sizes[i];
    if (!overflow) count *= view.sizes[i];
  }
  return !overflow;
}

}  // namespace

std::error_code parse_idx(std::span<const std::uint8_t> bytes, IdxView& out, std::string& detail) {
  if (const std::error_code error = check_magic(bytes, detail)) return error;
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
  const bool countable = count_elements(view, count);
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

std::error_code parse_images(std::span<const std::uint8_t> bytes,
                             std::span<const std::uint8_t>& images, std::string& detail) {
  IdxView view;
  if (const std::error_code error = parse_idx(bytes, view, detail)) return error;
  if (view.dimensions != 3 || view.sizes[1] != kImageSide || view.sizes[2] != kImageSide) {
    detail = sentence("images, shape [rows, 28, 28]", shape_text(view));
    return DataError::kIdxBadShape;
  }
  images = view.elements;
  return {};
}

std::error_code parse_labels(std::span<const std::uint8_t> bytes,
                             std::span<const std::uint8_t>& labels, std::string& detail) {
  IdxView view;
  if (const std::error_code error = parse_idx(bytes, view, detail)) return error;
  if (view.dimensions != 1) {
    detail = sentence("labels, shape [rows]", shape_text(view));
    return DataError::kIdxBadShape;
  }
  const auto* const bad =
      std::find_if(view.elements.data(), view.elements.data() + view.elements.size(),
                   [](std::uint8_t label) { return label >= kClasses; });
  if (bad != view.elements.data() + view.elements.size()) {
    detail = sentence("labels 0 to 9", std::to_string(*bad) + " in row " +
                                           std::to_string(bad - view.elements.data()));
    return DataError::kBadLabel;
  }
  labels = view.elements;
  return {};
}

std::array<std::uint8_t, kIdxImagesHeaderBytes> images_header(std::uint32_t rows) {
  std::array<std::uint8_t, kIdxImagesHeaderBytes> header{};
  write_header(header, {rows, kImageSide, kImageSide});
  return header;
}

std::array<std::uint8_t, kIdxLabelsHeaderBytes> labels_header(std::uint32_t rows) {
  std::array<std::uint8_t, kIdxLabelsHeaderBytes> header{};
  write_header(header, {rows});
  return header;
}

}  // namespace disttf::data
