// The files of a run's telemetry: records, written and read, and timelines.
//
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

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "run/monitor/core/record.h"
#include "run/monitor/core/trace.h"

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

// Reads the records of a run from its files.
//
//   DIR/records/*.jsonl    of a --train_dir: each process that writes records has a file of its own
//   FILE                   one of these, or a --metrics_file
//
// Merges files by time: of the next records of all files, the earliest comes first. Memory is
// bounded: a piece per file, no longer than the longest line. An incomplete last line, left by a
// process that died, is no record.
//
// Files can be read while they grow: a later read returns the new records, also of new files.
//
// Not thread-safe.
struct RecordReading {
  std::uint64_t records = 0;     // taken
  std::uint64_t long_lines = 0;  // skipped, because they are too long
  std::uint64_t bad_lines = 0;   // skipped, by BadLines::kSkip
  std::uint64_t old_files = 0;   // the oldest files, skipped because there are too many
};

enum class BadLines : std::uint8_t {
  kRefuse,  // the first one throws
  kSkip     // they are counted
};

// The longest line: of --metrics_file, with a confusion matrix of any number of classes. Records
// have kMaxRecordBytes.
inline constexpr std::size_t kMostMetricsBytes = std::size_t{1} << 20U;
// The most files of one folder, each written by one start of a process.
inline constexpr std::size_t kMostRecordFiles = 1000;

class RecordFiles {
 public:
  // `path`: a --train_dir, a folder of *.jsonl, or a file. Does not read yet.
  explicit RecordFiles(std::filesystem::path path);
  ~RecordFiles();
  RecordFiles(const RecordFiles&) = delete;
  RecordFiles& operator=(const RecordFiles&) = delete;

  // Calls `take` with each record of a known kind (record_line.h); from the second call on only
  // with new records. Throws std::invalid_argument with one sentence, which names file, line,
  // field, value and what is allowed, and std::system_error if a file cannot be read; a later call
  // may continue. A folder without such files has no records.
  RecordReading read(BadLines bad_lines,
                     const std::function<void(const nlohmann::ordered_json&)>& take);

 private:
  class Source;
  void find_files(RecordReading& reading);

  std::filesystem::path path_;
  std::vector<std::unique_ptr<Source>> files_;  // until a file cannot be read any more
};

// The files of timelines: TRAIN_DIR/traces/trace-STEP.json, or without --train_dir
// disttf-trace-PID-STEP.json in the directory for temporary files.

// Writes the file. The record has the path, or the error.
[[nodiscard]] TraceRecord write_trace(const Trace& trace, const std::filesystem::path& train_dir);

}  // namespace disttf::roles
