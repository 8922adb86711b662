// CRC-32 of a frame header, compatible with zlib's crc32() (polynomial 0xEDB88320, reflected), with
// eight tables for eight bytes per iteration. Every exchange computes four of them in sequence, of
// 60 bytes each. zlib is made for long inputs and processes these mostly byte by byte.
//
// Pure; callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/wire/codec.h"

namespace disttf::net {

// tables[k][b]: the effect of byte b on the sum after k further bytes, all 0.
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr CrcTables make_crc_tables() noexcept {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum >> 1U) ^ ((sum & 1U) != 0 ? 0xEDB88320U : 0U);
    }
    tables[0][byte] = sum;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}

inline constexpr CrcTables kCrcTables = make_crc_tables();

[[nodiscard]] constexpr std::uint32_t crc32(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kTurn = 8;
  std::uint32_t sum = ~std::uint32_t{0};
  for (; bytes.size() >= kTurn; bytes = bytes.subspan(kTurn)) {
    const std::uint64_t word = load_le<std::uint64_t>(bytes) ^ sum;
    sum = 0;
    for (std::size_t i = 0; i < kTurn; ++i) {
      sum ^= kCrcTables[kTurn - 1 - i][(word >> (8 * i)) & 0xFFU];
    }
  }
  for (const std::byte byte : bytes) {
    sum = (sum >> 8U) ^ kCrcTables[0][(sum ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
  }
  return ~sum;
}

}  // namespace disttf::net
