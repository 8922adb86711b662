// The records of a run, read from its files.
//
//   DIR/records/*.jsonl    of a --train_dir: each process that writes records has a file of its own
//   FILE                   one of these, or what --metrics_file has written
//
// Files are merged by time: of the records that come next in each, the earliest comes first. Memory
// is bounded: a piece of each file, no longer than a line may be. What a process that died has left
// behind is no record: the last line of a file that does not end.
//
// Files that are still being written to can be read on: what has come since, in files that have
// come since, too.
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
  std::uint64_t records = 0;     // were taken
  std::uint64_t long_lines = 0;  // of more bytes than a line may have: left out
  std::uint64_t bad_lines = 0;   // left out, by BadLines::kSkip
  std::uint64_t old_files = 0;   // more files than are read: the oldest were left out
};

enum class BadLines : std::uint8_t {
  kRefuse,  // the first one throws
  kSkip     // they are counted
};

// Of a line; one of --metrics_file has the confusion matrix, of any number of classes. Of a record
// kMaxRecordBytes.
inline constexpr std::size_t kMostMetricsBytes = std::size_t{1} << 20U;
// Of one folder. A run that was started anew a thousand times has other worries.
inline constexpr std::size_t kMostRecordFiles = 1000;

class RecordFiles {
 public:
  // `path`: a --train_dir, a folder of *.jsonl, or a file. Nothing is read yet.
  explicit RecordFiles(std::filesystem::path path);
  ~RecordFiles();
  RecordFiles(const RecordFiles&) = delete;
  RecordFiles& operator=(const RecordFiles&) = delete;

  // Calls `take` with each record of a kind that is known (record_line.h), from the second call on
  // with those that have come since the last one. Throws std::invalid_argument with one sentence,
  // which names file, line, field, value and what is allowed, and std::system_error where a file
  // cannot be read; it can then be called again. A folder without such files has no records.
  RecordReading read(BadLines bad_lines,
                     const std::function<void(const nlohmann::ordered_json&)>& take);

 private:
  class Source;
  void find_files(RecordReading& reading);

  std::filesystem::path path_;
  std::vector<std::unique_ptr<Source>> files_;  // each until it cannot be read on
};

}  // namespace disttf::roles
