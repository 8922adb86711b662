#include "data/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace disttf::data {
namespace {

// Processes 8 bytes per step, because one byte at a time would be slower than a network delivers
// them.
constexpr std::size_t kTurnBytes = 8;

// tables[k][b]: what byte b does to the checksum when k further bytes, all 0, have come after it.
// The polynomial has its highest power in the lowest bit.
using Tables = std::array<std::array<std::uint32_t, 256>, kTurnBytes>;
constexpr Tables kTables = [] {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1U) ^ ((value & 1U) != 0 ? kPolynomial : 0U);
    }
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}();

static_assert(std::endian::native == std::endian::little);

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  std::uint32_t value = ~before;
  for (; bytes.size() >= kTurnBytes; bytes = bytes.subspan(kTurnBytes)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), kTurnBytes);
    // The checksum so far enters the first four bytes, which the tables then carry through the
    // others.
    word ^= value;
    value = 0;
    for (std::size_t i = 0; i < kTurnBytes; ++i) {
      value ^= kTables[kTurnBytes - 1 - i][(word >> (8 * i)) & 0xFFU];
    }
  }
  for (const std::byte byte : bytes) {
    value = (value >> 8U) ^ kTables[0][(value ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
  }
  return ~value;
}

std::uint32_t crc32c(std::string_view bytes) noexcept {
  return crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

std::uint32_t masked_crc32c(std::string_view bytes) noexcept {
  constexpr int kTurn = 15;
  constexpr std::uint32_t kMask = 0xA282EAD8;
  // TensorFlow's and LevelDB's masking: a checksum over data that contains checksums would be weak.
  return std::rotr(crc32c(bytes), kTurn) + kMask;
}

}  // namespace disttf::data
