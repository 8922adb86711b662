// NPY, NumPy's file format of one array: a header, then the elements. The header, as
// numpy.lib.format has it:
//
//   offset  size  field
//        0     6  0x93 'N' 'U' 'M' 'P' 'Y'
//        6     2  version: 1, 2 or 3, then 0
//        8     2  length n of what follows, little-endian; in versions 2 and 3 four bytes
//       10     n  a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//
// Read are bool and whole numbers of 1 to 8 bytes, floats of 2, 4 and 8, in either byte order, in C
// order. Objects are refused: they are pickles, which are programs.
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
  std::string type;  // as it is written there: "<f4"
  NpyKind kind = NpyKind::kFloat;
  std::size_t element_bytes = 0;  // 1, 2, 4, 8
  bool is_big_endian = false;
  std::vector<std::uint64_t> shape;  // [rows, ...]; none: a single number

  // Of all that is behind the first size: of a row. `is_bytes`: of an array of bytes, 0 to 255.
  [[nodiscard]] std::uint64_t row_elements() const noexcept;
  [[nodiscard]] bool is_bytes() const noexcept {
    return kind == NpyKind::kUnsigned && element_bytes == 1;
  }
  // "(3, 4) of <f4"
  [[nodiscard]] std::string text() const;
};

// Where the dict begins, and how long it is; of the first kNpyPrefixBytes of a file.
inline constexpr std::size_t kNpyPrefixBytes = 12;
struct NpyPrefix {
  std::size_t dict_begin = 0;
  std::size_t dict_bytes = 0;
};
// `prefix`: fewer bytes where the file is as short. Throws UnusableData; `where` begins the
// sentence: the name of the file.
[[nodiscard]] NpyPrefix parse_npy_prefix(std::span<const std::uint8_t> prefix,
                                         const std::string& where);
// The dict. The bytes of all elements fit 63 bits. Throws UnusableData.
[[nodiscard]] NpyHeader parse_npy_dict(std::string_view dict, const std::string& where);

// Elements, as many as `numbers` has, as floats of 32 bits: the nearest. Returns the place of the
// first one that is none of these or not finite; numbers.size(): there is none.
// REQUIRES: elements.size() == numbers.size() * header.element_bytes.
[[nodiscard]] std::size_t npy_numbers(const NpyHeader& header,
                                      std::span<const std::uint8_t> elements,
                                      std::span<float> numbers) noexcept;

// One element as a class is called: 3 of 3.0 and of True 1.
// REQUIRES: element.size() == header.element_bytes.
[[nodiscard]] std::string npy_word(const NpyHeader& header, std::span<const std::uint8_t> element);

// What stands before the elements of an array of float32 in C order, as many as the product of
// `shape`: a multiple of 64 bytes, as NumPy writes it.
[[nodiscard]] std::string encode_npy_header(std::span<const std::size_t> shape);

}  // namespace disttf::data
