#include "math/bf16.h"

#include <cassert>

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

}  // namespace disttf::math
