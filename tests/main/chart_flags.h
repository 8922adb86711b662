// The flags in deploy/helm/disttf, the Helm chart: lines of values.yaml between two marks, and a
// part of values.schema.json, generated from the flags that `render` passes to tasks.
#pragma once

#include <string>

namespace disttf {

inline constexpr const char* kChartPath = DISTTF_SOURCE_DIR "/deploy/helm/disttf/";

// Returns a file of the chart from the source tree.
[[nodiscard]] std::string read_chart_file(const std::string& name);

// Returns values.yaml with the lines between the marks regenerated. Throws std::invalid_argument if
// the marks are missing.
[[nodiscard]] std::string with_flag_lines(const std::string& values);

// Returns values.schema.json with `properties.flags.properties` regenerated.
[[nodiscard]] std::string with_flag_schemas(const std::string& schema);

}  // namespace disttf
