// Records with pictures, after an evaluation: images with a wrong answer, and the filters of the
// first layer.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "math/evaluation.h"
#include "math/model_spec.h"
#include "math/parameter_layout.h"

namespace disttf::roles {

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
