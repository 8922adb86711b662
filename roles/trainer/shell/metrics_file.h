// The file of --metrics_file: JSON Lines, one evaluation a line.
#pragma once

#include <string>
#include <string_view>

namespace disttf::roles {

// Not thread-safe.
class MetricsFile {
 public:
  // `path` empty: no file, and append() does nothing.
  explicit MetricsFile(std::string path) : path_(std::move(path)) {}

  // Appends `line`, which ends with a newline, to the file, and creates the file if necessary. It
  // uses one write, so that a killed process leaves a whole line or none. A failure is logged, the
  // first time in a row, and training goes on. After a partial line (the disk was full) the next
  // one begins on a line of its own.
  void append(std::string_view line);

 private:
  std::string path_;
  bool has_failed_ = false;
  bool left_a_part_ = false;
};

}  // namespace disttf::roles
