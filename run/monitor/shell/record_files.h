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
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

namespace disttf::roles {

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

}  // namespace disttf::roles
