// CRC-32C (Castagnoli): the checksum of TensorBoard's event files, and of what lies in Google's
// Cloud Storage.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace disttf::data {

// `before`: the checksum of what comes before these bytes, so that a text may be given in pieces.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t before = 0) noexcept;
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes) noexcept;

// As event files hold it: turned right by 15 bits, plus a constant, so that a checksum of bytes
// that hold checksums says something, too.
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes) noexcept;

}  // namespace disttf::data
