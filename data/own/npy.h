// NPY, NumPy's file format for one array: a header, then the elements. The header, as
// numpy.lib.format defines it:
//
//   offset  size  field
//        0     6  0x93 'N' 'U' 'M' 'P' 'Y'
//        6     2  version: 1, 2 or 3, then 0
//        8     2  length n of what follows, little-endian; in versions 2 and 3 four bytes
//       10     n  a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//
// Supported are bool, integers of 1 to 8 bytes, and floats of 2, 4 and 8, in either byte order, in
// C order. Objects are refused: they are pickles, which can run code.
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

enum class NpyKind : std::uint8_t { kBool, kSigned, kUnsigned, kFloat };

struct NpyHeader {
  std::string type;  // as written in the file: "<f4"
  NpyKind kind = NpyKind::kFloat;
  std::size_t element_bytes = 0;  // 1, 2, 4, 8
  bool is_big_endian = false;
  std::vector<std::uint64_t> shape;  // [rows, ...]; empty: a single number

  // row_elements(): the product of all sizes after the first. is_bytes(): an array of bytes, 0 to
  // 255.
  [[nodiscard]] std::uint64_t row_elements() const noexcept;
  [[nodiscard]] bool is_bytes() const noexcept {
    return kind == NpyKind::kUnsigned && element_bytes == 1;
  }
  // "(3, 4) of <f4"
  [[nodiscard]] std::string text() const;
};

// The position and length of the dict, from the first kNpyPrefixBytes of a file.
inline constexpr std::size_t kNpyPrefixBytes = 12;
struct NpyPrefix {
  std::size_t dict_begin = 0;
  std::size_t dict_bytes = 0;
};
// `prefix` is shorter than kNpyPrefixBytes if the file is. Throws UnusableData; `where`, the name
// of the file, begins the sentence.
[[nodiscard]] NpyPrefix parse_npy_prefix(std::span<const std::uint8_t> prefix,
                                         const std::string& where);
// Parses the dict. The byte size of all elements fits 63 bits. Throws UnusableData.
[[nodiscard]] NpyHeader parse_npy_dict(std::string_view dict, const std::string& where);

// Converts numbers.size() elements to the nearest 32-bit floats. Returns the index of the first
// element that has no finite 32-bit value, and numbers.size() if there is none.
// REQUIRES: elements.size() == numbers.size() * header.element_bytes.
[[nodiscard]] std::size_t npy_numbers(const NpyHeader& header,
                                      std::span<const std::uint8_t> elements,
                                      std::span<float> numbers) noexcept;

// Returns one element as a class name: 3 for 3.0, 1 for True.
// REQUIRES: element.size() == header.element_bytes.
[[nodiscard]] std::string npy_word(const NpyHeader& header, std::span<const std::uint8_t> element);

// Returns the header of a float32 array in C order with the given shape; its size is a multiple of
// 64 bytes, as NumPy writes it.
[[nodiscard]] std::string encode_npy_header(std::span<const std::size_t> shape);

}  // namespace disttf::data
