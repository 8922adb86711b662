// Pictures of a run, for TensorBoard and for records.
//
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

#include "data/dataset.h"
#include "math/evaluation.h"
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

// Records with pictures, after an evaluation: images with a wrong answer, and the filters of the
// first layer.
//
// Pure functions; callable from any thread.

// Of the test set, in its order.
inline constexpr std::size_t kMostWrongPictures = 25;

// Empty if examples are not images with one or three channels; a picture larger than the limit of a
// record is left out. `time`: seconds since the epoch.
[[nodiscard]] std::vector<std::string> wrong_picture_lines(const data::Dataset& dataset,
                                                           const math::Evaluation& test,
                                                           std::uint64_t step, double time);
[[nodiscard]] std::vector<std::string> filter_picture_lines(const math::ModelSpec& spec,
                                                            const math::ParameterLayout& layout,
                                                            std::span<const float> parameters,
                                                            std::uint64_t step, double time);

}  // namespace disttf::roles
