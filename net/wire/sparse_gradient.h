// The body of a push with the flag *sparse*: the non-zero components of a range's gradient.
//
//   offset  size  field
//        0   4 n  where each is: floats from the beginning of the range, ascending
//      4 n   v n  what each is: v = 4, float32; where the run rounds, v = 2, bfloat16
//
// n is the body's size divided by 4 + v. All little-endian. Pure; callable from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

namespace disttf::net {

// The size of a body with that many components.
[[nodiscard]] constexpr std::size_t sparse_bytes(std::size_t components, bool bf16) noexcept {
  return components * (bf16 ? 6 : 8);
}

// Encodes into `body` and reuses its memory. Skips components whose bits are all 0; -0 is kept.
// REQUIRES: fewer than 2^32 values; with `bf16` they have been rounded to it.
void encode_sparse(std::span<const float> values, bool bf16, std::vector<std::byte>& body);

// Decodes untrusted bytes. WireError::kBadBody, with `values` unchanged, unless they are an output
// of encode_sparse() for a range of this size.
[[nodiscard]] std::error_code decode_sparse(std::span<const std::byte> body, bool bf16,
                                            std::span<float> values) noexcept;

}  // namespace disttf::net
