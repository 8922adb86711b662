#include "data/tensorboard/crc32c.h"

#include <array>
#include <bit>

namespace disttf::data {
namespace {

// What each byte does to the checksum. The polynomial has its highest power in the lowest bit.
constexpr std::array<std::uint32_t, 256> kTable = [] {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1U) ^ ((value & 1U) != 0 ? kPolynomial : 0U);
    }
    table[byte] = value;
  }
  return table;
}();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
  std::uint32_t value = 0xFFFFFFFF;
  for (const char byte : bytes) {
    value = (value >> 8U) ^ kTable[(value ^ static_cast<unsigned char>(byte)) & 0xFFU];
  }
  return ~value;
}

std::uint32_t masked_crc32c(std::string_view bytes) noexcept {
  constexpr int kTurn = 15;
  constexpr std::uint32_t kMask = 0xA282EAD8;
  return std::rotr(crc32c(bytes), kTurn) + kMask;
}

}  // namespace disttf::data
