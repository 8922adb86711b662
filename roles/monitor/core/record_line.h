// A line of a record file (docs/records.md), or of --metrics_file, as a record.
//
// Pure functions; callable from any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace disttf::roles {

// The "source" of an evaluation that was read from a line of --metrics_file.
inline constexpr const char* kMetricsFile = "metrics_file";

struct RecordLine {
  // null: a kind that nobody here knows, which is no mistake, or a line that is wrong.
  nlohmann::ordered_json record;
  // Empty, or what is wrong: the field, its value and what is allowed.
  std::string why;
};

// A line of --metrics_file becomes an evaluation whose time is its seconds since the chief's
// process has begun to train. Of a kind that is known, the fields that are read here are what they
// should be; numbers that are not finite are null.
[[nodiscard]] RecordLine read_record_line(std::string_view line);

}  // namespace disttf::roles
