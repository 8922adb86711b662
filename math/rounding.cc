#include "math/rounding.h"

#include <cassert>
#include <cstdint>

#include "math/kernels_table.h"

namespace disttf::math {

void to_bf16(std::span<const float> from, std::span<std::uint16_t> to, Isa isa) {
  assert(from.size() == to.size());
  kernels(isa).to_bf16(from.data(), to.data(), from.size());
}

void from_bf16(std::span<const std::uint16_t> from, std::span<float> to, Isa isa) {
  assert(from.size() == to.size());
  kernels(isa).from_bf16(from.data(), to.data(), from.size());
}

void round_to_bf16(std::span<const float> from, std::span<float> to, Isa isa) {
  assert(from.size() == to.size());
  kernels(isa).round_to_bf16(from.data(), to.data(), from.size());
}

namespace {

std::size_t blocks_of(std::size_t count) noexcept {
  return (count + kFloatsPerBlock - 1) / kFloatsPerBlock;
}

}  // namespace

void to_block_float(std::span<const float> from, unsigned bits, std::span<std::byte> to, Isa isa) {
  assert(to.size() == block_float_bytes(from.size(), bits));
  auto* bytes = reinterpret_cast<std::uint8_t*>(to.data());
  kernels(isa).to_blocks(from.data(), bytes, bytes + blocks_of(from.size()), from.size(), bits);
}

void from_block_float(std::span<const std::byte> from, unsigned bits, std::span<float> to,
                      Isa isa) {
  assert(from.size() == block_float_bytes(to.size(), bits));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from.data());
  kernels(isa).from_blocks(bytes, bytes + blocks_of(to.size()), to.data(), to.size(), bits);
}

void round_to_block_float(std::span<const float> from, unsigned bits, std::span<float> to,
                          Isa isa) {
  assert(from.size() == to.size());
  kernels(isa).round_to_blocks(from.data(), to.data(), from.size(), bits);
}

}  // namespace disttf::math
