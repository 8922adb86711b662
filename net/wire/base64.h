// Base64 (RFC 4648), in both directions.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::net {

[[nodiscard]] std::string base64(std::span<const std::byte> bytes);
[[nodiscard]] std::string base64(std::string_view bytes);
// The URL alphabet, as in JWTs: "-" and "_", without padding.
[[nodiscard]] std::string base64_for_urls(std::string_view bytes);

// Accepts either alphabet, with or without padding. False: not base64; the content of `bytes` is
// unspecified then.
[[nodiscard]] bool decode_base64(std::string_view text, std::vector<std::uint8_t>& bytes);
// The value of up to ten digits without padding. nullopt: a character is no digit, or there are
// more than ten.
[[nodiscard]] std::optional<std::uint64_t> base64_bits(std::string_view digits);

}  // namespace disttf::net
