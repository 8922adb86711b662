#include "net/wire/sparse_gradient.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "net/wire/codec.h"
#include "net/wire/frame.h"

namespace disttf::net {
namespace {

constexpr std::size_t kIndexBytes = 4;

// The bits that are written of a value, in the upper half for bfloat16, whose lower bits are 0.
std::uint32_t bits_of(float value, bool bf16) noexcept {
  return std::bit_cast<std::uint32_t>(value) & (bf16 ? 0xFFFF0000U : 0xFFFFFFFFU);
}

std::uint32_t load_value(std::span<const std::byte> values, std::size_t at, bool bf16) noexcept {
  return bf16 ? static_cast<std::uint32_t>(load_le<std::uint16_t>(values.subspan(2 * at))) << 16U
              : load_le<std::uint32_t>(values.subspan(4 * at));
}

}  // namespace

void encode_sparse(std::span<const float> values, bool bf16, std::vector<std::byte>& body) {
  const auto count = static_cast<std::size_t>(
      // Compares bits and not values: -0 is sent, so that the receiver's vector is bit-identical.
      std::ranges::count_if(values, [bf16](float value) { return bits_of(value, bf16) != 0; }));
  body.resize(sparse_bytes(count, bf16));
  const std::span<std::byte> indices = std::span(body).first(kIndexBytes * count);
  const std::span<std::byte> kept = std::span(body).subspan(indices.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = bits_of(values[i], bf16);
    if (bits == 0) {
      continue;
    }
    store_le(static_cast<std::uint32_t>(i), indices.subspan(kIndexBytes * at));
    if (bf16) {
      store_le(static_cast<std::uint16_t>(bits >> 16U), kept.subspan(2 * at));
    } else {
      store_le(bits, kept.subspan(4 * at));
    }
    ++at;
  }
}

std::error_code decode_sparse(std::span<const std::byte> body, bool bf16,
                              std::span<float> values) noexcept {
  const std::size_t count = body.size() / sparse_bytes(1, bf16);
  if (body.size() != sparse_bytes(count, bf16) || count > values.size()) {
    return WireError::kBadBody;
  }
  const auto indices = body.first(kIndexBytes * count);
  const auto kept = body.subspan(indices.size());
  std::uint64_t next = 0;  // lower bound of the next index
  // Checks everything first, so that an invalid body leaves `values` unchanged.
  for (std::size_t at = 0; at < count; ++at) {
    const auto index = load_le<std::uint32_t>(indices.subspan(kIndexBytes * at));
    // Strictly ascending, so no index occurs twice. A stored zero is refused as well: a gradient
    // has exactly one encoding.
    if (index < next || index >= values.size() || load_value(kept, at, bf16) == 0) {
      return WireError::kBadBody;
    }
    next = std::uint64_t{index} + 1;
  }
  std::ranges::fill(values, 0.0F);
  for (std::size_t at = 0; at < count; ++at) {
    values[load_le<std::uint32_t>(indices.subspan(kIndexBytes * at))] =
        std::bit_cast<float>(load_value(kept, at, bf16));
  }
  return {};
}

}  // namespace disttf::net
