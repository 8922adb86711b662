#include "roles/monitor/shell/record_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "data/file.h"
#include "roles/monitor/core/record.h"
#include "roles/monitor/core/record_line.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::ordered_json;
using FilePath = std::filesystem::path;

// Read at once. Files are closed in between, so that a folder may hold more of them than a process
// may have open; more at once is more memory for each file, less is more calls.
constexpr std::size_t kPieceBytes = std::size_t{16} << 10U;

// One file, and the record that comes next in it.
class RecordSource {
 public:
  RecordSource(FilePath file, std::size_t most_bytes, BadLines bad_lines)
      : path_(std::move(file)), most_bytes_(most_bytes), bad_lines_(bad_lines) {}

  // False: there is no further record.
  bool next(RecordReading& reading) {
    while (next_line(reading)) {
      RecordLine line = read_record_line(line_);
      if (!line.why.empty() && bad_lines_ == BadLines::kRefuse) {
        throw std::invalid_argument(path_.string() + ", line " + std::to_string(number_) + ": " +
                                    line.why);
      }
      if (!line.why.empty()) {
        ++reading.bad_lines;
      } else if (!line.record.is_null()) {
        record_ = std::move(line.record);
        time_ = record_.at("time");
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] const Json& record() const noexcept { return record_; }
  [[nodiscard]] double time() const noexcept { return time_; }

 private:
  // Sets line_ to the next one that has an end and is not too long; empty ones do not count.
  bool next_line(RecordReading& reading) {
    bool is_long = false;  // what there was of this line is forgotten
    while (true) {
      const std::size_t end = buffer_.find('\n', at_);
      if (end == std::string::npos) {
        is_long = is_long || buffer_.size() - at_ > most_bytes_;
        buffer_.erase(0, is_long ? buffer_.size() : at_);
        at_ = 0;
        if (!read_piece()) {
          return false;
        }
        continue;
      }
      line_.assign(buffer_, at_, end - at_);
      at_ = end + 1;
      ++number_;
      if (is_long || line_.size() > most_bytes_) {
        ++reading.long_lines;
        is_long = false;
      } else if (!line_.empty()) {
        return true;
      }
    }
  }

  bool read_piece() {
    struct stat status {};
    const data::FileDescriptor file = data::open_for_reading(path_, status);
    const std::size_t kept = buffer_.size();
    buffer_.resize(kept + kPieceBytes);
    ssize_t count = 0;
    do {
      count =
          ::pread(file.number(), buffer_.data() + kept, kPieceBytes, static_cast<off_t>(offset_));
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
      throw std::system_error(errno, std::generic_category(), "cannot read " + path_.string());
    }
    buffer_.resize(kept + static_cast<std::size_t>(count));
    offset_ += static_cast<std::uint64_t>(count);
    return count > 0;
  }

  FilePath path_;
  std::size_t most_bytes_;
  BadLines bad_lines_;
  std::uint64_t offset_ = 0;  // of the file, what comes behind buffer_
  std::string buffer_;
  std::size_t at_ = 0;        // of buffer_
  std::uint64_t number_ = 0;  // of the line
  std::string line_;
  Json record_;
  double time_ = 0;
};

// In the order of their names, which begin with when they were made.
std::vector<FilePath> record_files_in(const FilePath& directory) {
  std::vector<FilePath> files;
  std::error_code error;
  for (std::filesystem::directory_iterator each(directory, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code ignored;
    if (each->path().extension() == ".jsonl" && each->is_regular_file(ignored)) {
      files.push_back(each->path());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw std::system_error(error, "cannot read " + directory.string());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

RecordReading read_records(const FilePath& where, BadLines bad_lines,
                           const std::function<void(const Json&)>& take) {
  RecordReading reading;
  std::vector<RecordSource> files;
  std::error_code ignored;
  if (std::filesystem::is_directory(where, ignored)) {
    const FilePath below = where / "records";
    std::vector<FilePath> names =
        record_files_in(std::filesystem::is_directory(below, ignored) ? below : where);
    if (names.size() > kMostRecordFiles) {
      reading.old_files = names.size() - kMostRecordFiles;
      names.erase(names.begin(), names.end() - kMostRecordFiles);
    }
    for (FilePath& name : names) {
      files.emplace_back(std::move(name), kMaxRecordBytes, bad_lines);
    }
  } else {
    files.emplace_back(where, kMostMetricsBytes, bad_lines);
  }
  std::erase_if(files, [&reading](RecordSource& file) { return !file.next(reading); });
  while (!files.empty()) {
    const auto first = std::ranges::min_element(files, {}, &RecordSource::time);
    take(first->record());
    ++reading.records;
    if (!first->next(reading)) {
      files.erase(first);
    }
  }
  return reading;
}

}  // namespace disttf::roles
