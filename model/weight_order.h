// Converts variables to and from the order that other frameworks use: channels before positions,
// units first.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "math/shape.h"

namespace disttf::roles {

// Converts rows of equally many floats, one for each number of `image`, from [positions, channels]
// to [channels, positions]; and back.
[[nodiscard]] std::vector<float> channels_first(std::span<const float> rows,
                                                const math::Shape& image);
[[nodiscard]] std::vector<float> channels_last(std::span<const float> rows,
                                               const math::Shape& image);

// The shape of a convolution's kernel.
struct KernelShape {
  std::size_t places = 0;  // kernel x kernel
  std::size_t channels = 0;
  std::size_t units = 0;
};
// [places, channels, units] -> [units, channels, places]; and back.
[[nodiscard]] std::vector<float> units_first(std::span<const float> weights,
                                             const KernelShape& shape);
[[nodiscard]] std::vector<float> units_last(std::span<const float> weights,
                                            const KernelShape& shape);

}  // namespace disttf::roles
