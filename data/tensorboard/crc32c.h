// CRC-32C (Castagnoli), the checksum of event files.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace disttf::data {

[[nodiscard]] std::uint32_t crc32c(std::string_view bytes) noexcept;

// As event files hold it: turned right by 15 bits, plus a constant, so that a checksum of bytes
// that hold checksums says something, too.
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes) noexcept;

}  // namespace disttf::data
