// What TensorBoard's projector shows: points, each with what is known of it. Three files of a
// directory, no event.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

inline constexpr std::string_view kProjectorConfig = "projector_config.pbtxt";
inline constexpr std::string_view kProjectorPoints = "embeddings.tsv";
inline constexpr std::string_view kProjectorLabels = "labels.tsv";

// Names the other two. `name`: of the points.
[[nodiscard]] std::string projector_config(std::string_view name);
// A line a point, its numbers between tabs. `values`: [points, width]; each number has as many
// digits as tell it from its neighbours.
[[nodiscard]] std::string projector_points(std::span<const float> values, std::size_t width);

struct ProjectorLabel {
  std::string_view label;
  std::string_view answer;
};
// A line a point, behind one that names the columns. Tabs and ends of lines become spaces.
[[nodiscard]] std::string projector_labels(std::span<const ProjectorLabel> labels);

}  // namespace disttf::data
