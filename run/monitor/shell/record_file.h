// A file of records below --train_dir, for later displays of the run: one record per line
// (run/monitor/core/record.h). `DIR/records/20261124T041500-HOST-PID.jsonl`.
//
// Repeated records are written ever more rarely, so a file grows with the logarithm of the run's
// time: a run of a day has a few megabytes. Each line is one appending write; a process that dies
// leaves at most one truncated line. Lines that cannot be written are lost, with one warning. A run
// whose --train_dir is a store's URL has no file: objects cannot be appended to.
//
// Not thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "data/file.h"

namespace disttf::roles {

class RecordFile {
 public:
  // The first record creates the file. `name`: the part before ".jsonl": "HOST-PID".
  RecordFile(const std::filesystem::path& train_dir, std::string name);

  // `series`: the name of repeated records ("step", "metrics worker:1"); empty: always written.
  // `time`: of the record.
  void write(std::string_view line, std::string_view series, double time);
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  [[nodiscard]] bool is_due(std::string_view series, double time);
  void open(double time);

  std::filesystem::path directory_;
  std::string name_;
  std::filesystem::path path_;
  data::FileDescriptor file_;
  double began_ = 0;  // 0: not begun
  bool has_failed_ = false;
  std::map<std::string, double, std::less<>> next_;  // by series: the earliest time of the next one
};

}  // namespace disttf::roles
