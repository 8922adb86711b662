// The records of a run, read from its files.
//
//   DIR/records/*.jsonl    of a --train_dir: each process that writes records has a file of its own
//   FILE                   one of these, or what --metrics_file has written
//
// Files are merged by time: of the records that come next in each, the earliest comes first. Memory
// is bounded: a piece of each file, no longer than a line may be. What a process that died has left
// behind is no record: the last line of a file that does not end.
//
// Callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

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

// `path`: a --train_dir, a folder of *.jsonl, or a file. Calls `take` with each record of a kind
// that is known (record_line.h). Throws std::invalid_argument with one sentence, which names
// file, line, field, value and what is allowed, and std::system_error where a file cannot be read.
// A folder without such files has no records.
RecordReading read_records(const std::filesystem::path& path, BadLines bad_lines,
                           const std::function<void(const nlohmann::ordered_json&)>& take);

}  // namespace disttf::roles
