// Weights as a picture.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/model_spec.h"
#include "math/parameter_layout.h"

namespace disttf::roles {

struct Picture {
  std::string name;  // of the variable
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 0;  // 1 or 3
  std::size_t rows = 0;      // of filters
  std::size_t columns = 0;
  std::size_t count = 0;             // of filters; the last row may have fewer
  std::vector<std::uint8_t> pixels;  // [height, width, channels]
};

inline constexpr std::size_t kMostFilters = 64;

// Returns a picture of the first layer that has weights: for each of its first kMostFilters units
// or channels the weights of the pixels, side by side, separated by lines. Each filter ranges from
// black (minus its greatest weight) over grey (0) to white (its greatest weight). Small filters are
// enlarged. Returns nullopt if examples are not images with one or three channels.
[[nodiscard]] std::optional<Picture> picture_of_weights(const math::ModelSpec& spec,
                                                        const math::ParameterLayout& layout,
                                                        std::span<const float> parameters);

}  // namespace disttf::roles
