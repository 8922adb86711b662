// Numbers in file formats, lowest byte first.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <string>

namespace disttf::data {

// Appends the bytes of an integer or a floating-point number.
template <typename Number>
void append_little_endian(std::string& to, Number value) {
  // x86-64 and every ARM Linux are little-endian; another machine would need a byte swap.
  static_assert(std::endian::native == std::endian::little);
  const std::size_t begin = to.size();
  to.resize(begin + sizeof(value));
  std::memcpy(to.data() + begin, &value, sizeof(value));
}

}  // namespace disttf::data
