// A file of records below --train_dir, for whoever looks at the run later: one line each
// (roles/monitor/core/record.h). `DIR/records/20261124T041500-HOST-PID.jsonl`.
//
// What is told again and again is written more and more seldom, so a file grows with the logarithm
// of the run's time: a run of a day has a few megabytes. Each line is one write, at the end; a
// process that dies leaves at most one that is cut. What cannot be written is lost, with one
// warning. Of a run whose --train_dir is a store's URL there is no file: objects do not grow.
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
  // The file is made with the first record. `name`: the last part before ".jsonl": "HOST-PID".
  RecordFile(const std::filesystem::path& train_dir, std::string name);

  // `series`: what is told again and again ("step", "metrics worker:1"); empty: written always.
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
  double began_ = 0;  // 0: not yet
  bool has_failed_ = false;
  std::map<std::string, double, std::less<>> next_;  // by series: not before
};

}  // namespace disttf::roles
