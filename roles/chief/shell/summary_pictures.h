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

// What the first layer that has weights looks for in an image, of each of its first kMostFilters
// units or channels what it multiplies the pixels by: side by side, with a line between two, and
// each from -greatest, black, over 0, which is grey, to its greatest weight, white. Small ones are
// drawn larger. None where examples are not images that a PNG can hold, grey or of three colours.
[[nodiscard]] std::optional<Picture> picture_of_weights(const math::ModelSpec& spec,
                                                        const math::ParameterLayout& layout,
                                                        std::span<const float> parameters);

}  // namespace disttf::roles
