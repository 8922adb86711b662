// The files of TensorBoard's projector, which shows labelled points: three files of a directory, no
// event.
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

// Returns the configuration, which names the other two files. `name`: of the points.
[[nodiscard]] std::string projector_config(std::string_view name);
// Returns one line per point, its numbers separated by tabs. `values`: [points, width]; each number
// has enough digits to identify its float.
[[nodiscard]] std::string projector_points(std::span<const float> values, std::size_t width);

struct ProjectorLabel {
  std::string_view label;
  std::string_view answer;
};
// Returns one line per point, after a line with the column names. Tabs and line breaks become
// spaces.
[[nodiscard]] std::string projector_labels(std::span<const ProjectorLabel> labels);

}  // namespace disttf::data
