// Reads a line of a record file (docs/records.md), or of --metrics_file, as a record.
//
// Pure functions; callable from any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace disttf::roles {

// The "source" of an evaluation read from a line of --metrics_file.
inline constexpr const char* kMetricsFile = "metrics_file";

struct RecordLine {
  // null: the kind is unknown, which is no error, or the line is wrong.
  nlohmann::ordered_json record;
  // The error: the field, its value and what is allowed; empty: none.
  std::string why;
};

// A line of --metrics_file becomes an evaluation whose time is its seconds since the chief's
// process began to train. Checks the used fields of known kinds; numbers that are not finite are
// null.
[[nodiscard]] RecordLine read_record_line(std::string_view line);

}  // namespace disttf::roles
