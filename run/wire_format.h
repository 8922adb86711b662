// The wire format of a run's gradients and parameters, by --wire_dtype and --compress.
//
// A trainer rounds a gradient, or selects its components, before it pushes it, and encoding loses
// nothing more. So a gradient that is read in shared memory, and never encoded, has the same
// numbers. So have parameters, which trainers round themselves however they arrived.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "math/kernels.h"
#include "run/run_config.h"

namespace disttf::roles {

struct WireFormat {
  WireDtype dtype = WireDtype::kF32;
  std::size_t components = 0;  // largest number of pushed components, of the whole vector; 0: dense
  math::Isa isa = math::Isa::kGeneric;

  // Returns whether parameters and gradients are rounded.
  [[nodiscard]] bool rounds() const noexcept { return dtype != WireDtype::kF32; }
};
[[nodiscard]] WireFormat wire_format_of(const RunConfig& config);

// Returns the flags of a frame with parameters: net::kFlagBf16, kFlagInt8, kFlagInt4 or none.
[[nodiscard]] std::uint16_t tensor_flags(const WireFormat& wire) noexcept;
// Returns the flags of a push whose gradient is in its body: the same, and net::kFlagSparse.
[[nodiscard]] std::uint16_t gradient_flags(const WireFormat& wire) noexcept;
// Rounds the values as sending would. `to` is `from` or does not overlap it.
void round_to_wire(const WireFormat& wire, std::span<const float> from, std::span<float> to);

// The size of a range's parameters on the wire, and their encoding and decoding. REQUIRES:
// wire.rounds(); as many values as `floats`.
[[nodiscard]] std::size_t tensor_bytes(const WireFormat& wire, std::size_t floats) noexcept;
void pack_tensor(const WireFormat& wire, std::span<const float> values, std::span<std::byte> body);
void unpack_tensor(const WireFormat& wire, std::span<const std::byte> body,
                   std::span<float> values);

// Returns the body of the push of a range's gradient; it is in `scratch`, or is the gradient
// itself.
[[nodiscard]] std::span<const std::byte> pack_gradient(const WireFormat& wire,
                                                       std::span<const float> gradient,
                                                       std::vector<std::byte>& scratch);
// Returns the bytes of the longest body for a range of `floats` floats; and whether a body can have
// `bytes` bytes.
[[nodiscard]] std::size_t longest_gradient(const WireFormat& wire, std::size_t floats) noexcept;
[[nodiscard]] bool is_gradient_size(const WireFormat& wire, std::size_t floats,
                                    std::uint64_t bytes) noexcept;
// Returns WireError::kBadBody if the bytes are not a gradient. REQUIRES: is_gradient_size(wire,
// gradient.size(), body.size()).
[[nodiscard]] std::error_code unpack_gradient(const WireFormat& wire,
                                              std::span<const std::byte> body,
                                              std::span<float> gradient);

}  // namespace disttf::roles
