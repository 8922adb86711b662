// How a run's gradients and parameters lie in frames, by --wire_dtype and --compress.
//
// What a trainer pushes it has rounded, or has chosen the components of, before: writing it down
// loses nothing more, so a gradient in shared memory, which is not written down at all, is the
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
#include "roles/run_config.h"

namespace disttf::roles {

struct WireFormat {
  bool bf16 = false;
  std::size_t components = 0;  // of the whole vector's gradient, pushed at most; 0: dense
  math::Isa isa = math::Isa::kGeneric;
};
[[nodiscard]] WireFormat wire_format_of(const RunConfig& config);

// Of a push whose gradient lies in its body: net::kFlagBf16, net::kFlagSparse.
[[nodiscard]] std::uint16_t gradient_flags(const WireFormat& wire) noexcept;
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
