#include "run/wire_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "math/model.h"
#include "math/rounding.h"
#include "net/wire/frame.h"
#include "net/wire/sparse_gradient.h"

namespace disttf::roles {
namespace {

constexpr std::size_t kBf16Bytes = 2;

// Of a number in a block.
unsigned bits_of(WireDtype dtype) noexcept { return dtype == WireDtype::kInt8 ? 8 : 4; }

}  // namespace

WireFormat wire_format_of(const RunConfig& config) {
  WireFormat wire{.dtype = config.wire_dtype, .isa = config.isa};
  if (config.top_k != 0) {
    const auto size = static_cast<double>(math::layout_of(config.model).size());
    // Rounded up, so that at least one component is sent.
    wire.components = static_cast<std::size_t>(std::ceil(double{config.top_k} * size));
  }
  return wire;
}

std::uint16_t tensor_flags(const WireFormat& wire) noexcept {
  switch (wire.dtype) {
    case WireDtype::kF32:
      break;
    case WireDtype::kBf16:
      return net::kFlagBf16;
    case WireDtype::kInt8:
      return net::kFlagInt8;
    case WireDtype::kInt4:
      return net::kFlagInt4;
  }
  return 0;
}

std::uint16_t gradient_flags(const WireFormat& wire) noexcept {
  const unsigned sparse = wire.components != 0 ? unsigned{net::kFlagSparse} : 0U;
  return static_cast<std::uint16_t>(tensor_flags(wire) | sparse);
}

void round_to_wire(const WireFormat& wire, std::span<const float> from, std::span<float> to) {
  if (wire.dtype == WireDtype::kBf16) {
    math::round_to_bf16(from, to, wire.isa);
  } else if (wire.rounds()) {
    math::round_to_block_float(from, bits_of(wire.dtype), to, wire.isa);
    // In place there is nothing to copy.
  } else if (from.data() != to.data()) {
    std::copy(from.begin(), from.end(), to.begin());
  }
}

std::size_t tensor_bytes(const WireFormat& wire, std::size_t floats) noexcept {
  return wire.dtype == WireDtype::kBf16 ? floats * kBf16Bytes
                                        : math::block_float_bytes(floats, bits_of(wire.dtype));
}

void pack_tensor(const WireFormat& wire, std::span<const float> values, std::span<std::byte> body) {
  if (wire.dtype == WireDtype::kBf16) {
    math::to_bf16(values, {reinterpret_cast<std::uint16_t*>(body.data()), values.size()}, wire.isa);
  } else {
    math::to_block_float(values, bits_of(wire.dtype), body, wire.isa);
  }
}

void unpack_tensor(const WireFormat& wire, std::span<const std::byte> body,
                   std::span<float> values) {
  if (wire.dtype == WireDtype::kBf16) {
    math::from_bf16({reinterpret_cast<const std::uint16_t*>(body.data()), values.size()}, values,
                    wire.isa);
  } else {
    math::from_block_float(body, bits_of(wire.dtype), values, wire.isa);
  }
}

std::span<const std::byte> pack_gradient(const WireFormat& wire, std::span<const float> gradient,
                                         std::vector<std::byte>& scratch) {
  if (wire.components != 0) {
    net::encode_sparse(gradient, wire.rounds(), scratch);
    return scratch;
  }
  if (!wire.rounds()) {
    // Sent from where it is, without a copy.
    return std::as_bytes(gradient);
  }
  // The caller keeps the buffer, so only the first step allocates.
  scratch.resize(tensor_bytes(wire, gradient.size()));
  pack_tensor(wire, gradient, scratch);
  return scratch;
}

std::size_t longest_gradient(const WireFormat& wire, std::size_t floats) noexcept {
  if (wire.components != 0) {
    // The share is one of the whole model, so a small range may have fewer floats than components.
    return net::sparse_bytes(std::min(wire.components, floats), wire.rounds());
  }
  return wire.rounds() ? tensor_bytes(wire, floats) : floats * sizeof(float);
}

bool is_gradient_size(const WireFormat& wire, std::size_t floats, std::uint64_t bytes) noexcept {
  const std::size_t longest = longest_gradient(wire, floats);
  // A sparse gradient may have fewer components than allowed, but only whole ones.
  return wire.components != 0 ? bytes <= longest && bytes % net::sparse_bytes(1, wire.rounds()) == 0
                              : bytes == longest;
}

std::error_code unpack_gradient(const WireFormat& wire, std::span<const std::byte> body,
                                std::span<float> gradient) {
  if (wire.components != 0) {
    // Only this form can be malformed: its positions may lie outside. In the others all bits are
    // values.
    return net::decode_sparse(body, wire.rounds(), gradient);
  }
  if (wire.rounds()) {
    unpack_tensor(wire, body, gradient);
  } else {
    // The receiver has checked the size (is_gradient_size()) before it read the body.
    std::memcpy(gradient.data(), body.data(), body.size());
  }
  return {};
}

}  // namespace disttf::roles
