// CRC-32C (Castagnoli): the checksum of TensorBoard's event files and of objects in Google Cloud
// Storage.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace disttf::data {

// Returns the checksum of `bytes`. `before` is the checksum of the bytes that precede them, so a
// text can be passed in pieces.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t before = 0) noexcept;
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes) noexcept;

// Returns the masked form that event files store: rotated right by 15 bits, plus a constant. The
// mask keeps the checksum meaningful for data that itself contains checksums.
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes) noexcept;

}  // namespace disttf::data
