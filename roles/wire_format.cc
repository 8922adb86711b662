#include "roles/wire_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "math/bf16.h"
#include "math/model.h"
#include "net/frame.h"
#include "net/sparse_gradient.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kBf16Bytes = 2;

}  // namespace

WireFormat wire_format_of(const RunConfig& config) {
  WireFormat wire{.bf16 = config.wire_dtype == WireDtype::kBf16, .isa = config.isa};
  if (config.top_k != 0) {
    const auto size = static_cast<double>(math::layout_of(config.model).size());
    wire.components = static_cast<std::size_t>(std::ceil(double{config.top_k} * size));
  }
  return wire;
}

std::uint16_t gradient_flags(const WireFormat& wire) noexcept {
  const unsigned flags = (wire.bf16 ? unsigned{net::kFlagBf16} : 0U) |
                         (wire.components != 0 ? unsigned{net::kFlagSparse} : 0U);
  return static_cast<std::uint16_t>(flags);
}

std::span<const std::byte> pack_gradient(const WireFormat& wire, std::span<const float> gradient,
                                         std::vector<std::byte>& scratch) {
  if (wire.components != 0) {
    net::encode_sparse(gradient, wire.bf16, scratch);
    return scratch;
  }
  if (!wire.bf16) {
    return std::as_bytes(gradient);
  }
  scratch.resize(gradient.size() * kBf16Bytes);
  math::to_bf16(gradient, {reinterpret_cast<std::uint16_t*>(scratch.data()), gradient.size()},
                wire.isa);
  return scratch;
}

std::size_t longest_gradient(const WireFormat& wire, std::size_t floats) noexcept {
  return wire.components != 0 ? net::sparse_bytes(std::min(wire.components, floats), wire.bf16)
                              : floats * (wire.bf16 ? kBf16Bytes : sizeof(float));
}

bool is_gradient_size(const WireFormat& wire, std::size_t floats, std::uint64_t bytes) noexcept {
  const std::size_t longest = longest_gradient(wire, floats);
  return wire.components != 0 ? bytes <= longest && bytes % net::sparse_bytes(1, wire.bf16) == 0
                              : bytes == longest;
}

std::error_code unpack_gradient(const WireFormat& wire, std::span<const std::byte> body,
                                std::span<float> gradient) {
  if (wire.components != 0) {
    return net::decode_sparse(body, wire.bf16, gradient);
  }
  if (wire.bf16) {
    math::from_bf16({reinterpret_cast<const std::uint16_t*>(body.data()), gradient.size()},
                    gradient, wire.isa);
  } else {
    std::memcpy(gradient.data(), body.data(), body.size());
  }
  return {};
}

}  // namespace disttf::roles
