// The file of --metrics_file: JSON Lines, an evaluation a line.
#pragma once

#include <string>
#include <string_view>

namespace disttf::roles {

// Not thread-safe.
class MetricsFile {
 public:
  // Empty: no file, and append() does nothing.
  explicit MetricsFile(std::string path) : path_(std::move(path)) {}

  // Adds `line`, with its end, to the file, which is made if it is not there; in one write, so that
  // a process that is killed leaves a line or none. Where that fails the log says so, the first
  // time in a row, and training goes on; behind a part of a line (the disk was full) the next one
  // begins on a line of its own.
  void append(std::string_view line);

 private:
  std::string path_;
  bool has_failed_ = false;
  bool left_a_part_ = false;
};

}  // namespace disttf::roles
