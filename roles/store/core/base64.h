// Bytes as letters and digits, six bits in each (RFC 4648).
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace disttf::roles {

[[nodiscard]] std::string base64(std::span<const std::byte> bytes);
// As URLs and JWTs have it: "-" and "_", and nothing at the end.
[[nodiscard]] std::string base64_for_urls(std::string_view bytes);
// What up to ten digits mean, without "=", as one number. nullopt: one is none.
[[nodiscard]] std::optional<std::uint64_t> base64_bits(std::string_view digits);

}  // namespace disttf::roles
