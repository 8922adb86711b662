// Bytes as letters and digits, six bits in each (RFC 4648), and back.
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
// As URLs and JWTs have it: "-" and "_", and nothing at the end.
[[nodiscard]] std::string base64_for_urls(std::string_view bytes);

// Of either alphabet, with what fills the end or without. False: it is no base64; `bytes` is then
// of no use.
[[nodiscard]] bool decode_base64(std::string_view text, std::vector<std::uint8_t>& bytes);
// What up to ten digits mean, without "=", as one number. nullopt: one is none.
[[nodiscard]] std::optional<std::uint64_t> base64_bits(std::string_view digits);

}  // namespace disttf::net
