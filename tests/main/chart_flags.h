// The flags in deploy/helm/disttf, the chart of Helm: lines of values.yaml, between two marks, and
// a part of values.schema.json, made of the flags that `render` hands on to tasks.
#pragma once

#include <string>

namespace disttf {

inline constexpr const char* kChartPath = DISTTF_SOURCE_DIR "/deploy/helm/disttf/";

// A file of the chart as it lies in the source tree.
[[nodiscard]] std::string read_chart_file(const std::string& name);

// values.yaml with what stands between the marks made anew. Throws std::invalid_argument where they
// are missing.
[[nodiscard]] std::string with_flag_lines(const std::string& values);

// values.schema.json with `properties.flags.properties` made anew.
[[nodiscard]] std::string with_flag_schemas(const std::string& schema);

}  // namespace disttf
