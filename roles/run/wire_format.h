// How a run's gradients and parameters lie in frames, by --wire_dtype and --compress.
//
// What a trainer pushes it has rounded, or has chosen the components of, before: writing it down
// loses nothing more, so a gradient that is read where it lies, and not written down at all, is the
// same numbers. So are parameters, which trainers round themselves wherever they got them from.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "math/kernels.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

struct WireFormat {
  WireDtype dtype = WireDtype::kF32;
  std::size_t components = 0;  // of the whole vector's gradient, pushed at most; 0: dense
  math::Isa isa = math::Isa::kGeneric;

  // Parameters are rounded, and so are gradients.
  [[nodiscard]] bool rounds() const noexcept { return dtype != WireDtype::kF32; }
};
[[nodiscard]] WireFormat wire_format_of(const RunConfig& config);

// Of a frame with parameters: net::kFlagBf16, kFlagInt8, kFlagInt4 or none.
[[nodiscard]] std::uint16_t tensor_flags(const WireFormat& wire) noexcept;
// Of a push whose gradient lies in its body: the same, and net::kFlagSparse.
[[nodiscard]] std::uint16_t gradient_flags(const WireFormat& wire) noexcept;
// What sending would make of the values. `to` is `from` or does not overlap it.
void round_to_wire(const WireFormat& wire, std::span<const float> from, std::span<float> to);

// A range's parameters, in so many bytes. REQUIRES: wire.rounds(); as many values as floats.
[[nodiscard]] std::size_t tensor_bytes(const WireFormat& wire, std::size_t floats) noexcept;
void pack_tensor(const WireFormat& wire, std::span<const float> values, std::span<std::byte> body);
void unpack_tensor(const WireFormat& wire, std::span<const std::byte> body,
                   std::span<float> values);

// The body of the push of a range's gradient; in `scratch`, or the gradient itself.
[[nodiscard]] std::span<const std::byte> pack_gradient(const WireFormat& wire,
                                                       std::span<const float> gradient,
                                                       std::vector<std::byte>& scratch);
// Bytes of the longest body for a range of so many floats, and whether one can be that long.
[[nodiscard]] std::size_t longest_gradient(const WireFormat& wire, std::size_t floats) noexcept;
[[nodiscard]] bool is_gradient_size(const WireFormat& wire, std::size_t floats,
                                    std::uint64_t bytes) noexcept;
// REQUIRES: is_gradient_size(wire, gradient.size(), body.size()). WireError::kBadBody when the
// bytes are no gradient.
[[nodiscard]] std::error_code unpack_gradient(const WireFormat& wire,
                                              std::span<const std::byte> body,
                                              std::span<float> gradient);

}  // namespace disttf::roles
