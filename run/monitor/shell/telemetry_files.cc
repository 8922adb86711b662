#include "run/monitor/shell/telemetry_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "data/file.h"
#include "data/file_system.h"
#include "run/monitor/core/record.h"
#include "run/monitor/core/record_line.h"
#include "run/process/log.h"
#include "storage/store/core/store_url.h"

namespace disttf::roles {
namespace {

// For each series: every record at first, later one per thousandth of the run's time.
constexpr double kSpread = 1000;

// "20261124T041500"
std::string time_in_name(double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%S", &parts);
  return text.data();
}

}  // namespace

RecordFile::RecordFile(const std::filesystem::path& train_dir, std::string name)
    : directory_(train_dir / "records"), name_(std::move(name)) {}

bool RecordFile::is_due(std::string_view series, double time) {
  if (series.empty()) {
    return true;
  }
  const auto found = next_.find(series);
  if (found != next_.end() && time < found->second) {
    return false;
  }
  // The interval grows with the run, so that a file of any run has some thousand records per
  // series: n grows like 1000 ln t.
  const double next = time + (time - began_) / kSpread;
  if (found != next_.end()) {
    found->second = next;
  } else {
    next_.emplace(series, next);
  }
  return true;
}

void RecordFile::open(double time) {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  path_ = directory_ / (time_in_name(time) + "-" + name_ + ".jsonl");
  file_ =
      // Appended to, so that a process that is restarted within the second keeps the records.
      data::FileDescriptor(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
}

void RecordFile::write(std::string_view line, std::string_view series, double time) {
  // Opened at the first record, whose time is part of the name.
  if (began_ == 0) {
    began_ = time;
    if (is_store_url(directory_)) {
      has_failed_ = true;  // an object cannot be appended to
      return;
    }
    open(time);
  }
  if (line.empty() || has_failed_ || !is_due(series, time)) {
    return;
  }
  const std::string text = std::string(line) + "\n";
  // A short write sets no errno; a full disk is its usual cause.
  errno = file_.number() < 0 ? errno : ENOSPC;
  if (file_.number() < 0 ||
      ::write(file_.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    has_failed_ = true;
    log_warning("cannot write records of the run to " + path_.string() + ": " +
                std::system_category().default_error_condition(errno).message() +
                "; training continues without them");
  }
}

namespace {

using OrderedJson = nlohmann::ordered_json;
using FilePath = std::filesystem::path;

// Bytes per read. Files are closed in between, so that a folder may have more of them than a
// process may open. Larger pieces cost memory per file, smaller ones cost calls.
constexpr std::size_t kPieceBytes = std::size_t{16} << 10U;

// In the order of their names, which begin with their creation time.
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

// One file, and its next record.
class RecordFiles::Source {
 public:
  Source(FilePath file, std::size_t most_bytes) : path_(std::move(file)), most_bytes_(most_bytes) {}

  // Whether there is a next record, which record() then returns.
  bool has_next(BadLines bad_lines, RecordReading& reading) {
    while (!has_record_ && next_line(reading)) {
      RecordLine line = read_record_line(line_);
      if (!line.why.empty() && bad_lines == BadLines::kRefuse) {
        throw std::invalid_argument(path_.string() + ", line " + std::to_string(number_) + ": " +
                                    line.why);
      }
      if (!line.why.empty()) {
        ++reading.bad_lines;
      } else if (!line.record.is_null()) {
        record_ = std::move(line.record);
        // Kept beside the record, since the merge compares it for every file.
        time_ = record_.at("time");
        has_record_ = true;
      }
    }
    return has_record_;
  }
  void drop() noexcept { has_record_ = false; }

  [[nodiscard]] const FilePath& path() const noexcept { return path_; }
  [[nodiscard]] const OrderedJson& record() const noexcept { return record_; }
  [[nodiscard]] double time() const noexcept { return time_; }

 private:
  // Sets line_ to the next complete line that is not too long; skips empty lines.
  bool next_line(RecordReading& reading) {
    while (true) {
      const std::size_t end = buffer_.find('\n', at_);
      if (end == std::string::npos) {
        // A line beyond the limit is skipped, and its memory released, before its end is known.
        is_long_ = is_long_ || buffer_.size() - at_ > most_bytes_;
        buffer_.erase(0, is_long_ ? buffer_.size() : at_);
        at_ = 0;
        if (!read_piece()) {
          buffer_.shrink_to_fit();  // there may be a thousand of these objects
          return false;
        }
        continue;
      }
      line_.assign(buffer_, at_, end - at_);
      at_ = end + 1;
      ++number_;
      if (is_long_ || line_.size() > most_bytes_) {
        ++reading.long_lines;
        is_long_ = false;
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
    // An incomplete last line stays in the buffer: its writer may still be at it, and the next read
    // goes on there.
    buffer_.resize(kept + static_cast<std::size_t>(count));
    offset_ += static_cast<std::uint64_t>(count);
    return count > 0;
  }

  FilePath path_;
  std::size_t most_bytes_;
  std::uint64_t offset_ = 0;  // in the file, of the bytes after buffer_
  std::string buffer_;
  std::size_t at_ = 0;        // in buffer_
  bool is_long_ = false;      // the beginning of the present line was discarded
  std::uint64_t number_ = 0;  // of the line
  std::string line_;
  bool has_record_ = false;
  OrderedJson record_;
  double time_ = 0;
};

RecordFiles::RecordFiles(FilePath path) : path_(std::move(path)) {}
RecordFiles::~RecordFiles() = default;

// Adds new files, up to the limit of a folder.
void RecordFiles::find_files(RecordReading& reading) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path_, ignored)) {
    if (files_.empty()) {
      // A single file may be a --metrics_file, whose lines have another limit.
      files_.push_back(std::make_unique<Source>(path_, kMostMetricsBytes));
    }
    return;
  }
  const FilePath below = path_ / "records";
  std::vector<FilePath> names =
      record_files_in(std::filesystem::is_directory(below, ignored) ? below : path_);
  std::erase_if(names, [this](const FilePath& name) {
    return std::ranges::any_of(
        // Compared as text, which is cheaper than comparing paths part by part.
        files_, [&name](const auto& file) { return file->path().native() == name.native(); });
  });
  const std::size_t room = kMostRecordFiles - files_.size();
  if (names.size() > room) {
    reading.old_files = names.size() - room;
    // Names begin with times, so the oldest files are dropped.
    names.erase(names.begin(), names.end() - static_cast<std::ptrdiff_t>(room));
  }
  for (FilePath& name : names) {
    files_.push_back(std::make_unique<Source>(std::move(name), kMaxRecordBytes));
  }
}

RecordReading RecordFiles::read(BadLines bad_lines,
                                const std::function<void(const OrderedJson&)>& take) {
  RecordReading reading;
  find_files(reading);
  std::vector<Source*> files;  // those with a next record
  for (const std::unique_ptr<Source>& file : files_) {
    if (file->has_next(bad_lines, reading)) {
      files.push_back(file.get());
    }
  }
  while (!files.empty()) {
    // Merges the files by time.
    const auto first = std::ranges::min_element(files, {}, &Source::time);
    take((*first)->record());
    (*first)->drop();
    ++reading.records;
    if (!(*first)->has_next(bad_lines, reading)) {
      files.erase(first);
    }
  }
  return reading;
}

namespace {

std::filesystem::path path_for(const Trace& trace, const std::filesystem::path& train_dir) {
  const std::string step = std::to_string(trace.window().from) + ".json";
  // A timeline is for viewers, which open local files, so no store gets it.
  if (train_dir.empty() || is_store_url(train_dir)) {
    return std::filesystem::temp_directory_path() /
           ("disttf-trace-" + std::to_string(getpid()) + "-" + step);
  }
  std::filesystem::create_directories(train_dir / "traces");
  return std::filesystem::absolute(train_dir / "traces" / ("trace-" + step));
}

}  // namespace

TraceRecord write_trace(const Trace& trace, const std::filesystem::path& train_dir) {
  try {
    const std::filesystem::path path = path_for(trace, train_dir);
    const std::string text = trace.json();
    data::write_file_atomically(path, data::bytes_in(text));
    return {.file = path.string(),
            .why_not = {},
            .from = trace.window().from,
            .steps = trace.window().count,
            .missing = trace.missing(),
            .clock_error_seconds = trace.clock_error_seconds()};
  } catch (const std::exception& error) {
    // The run goes on: a timeline is an aid only.
    return {.file = {}, .why_not = error.what()};
  }
}

}  // namespace disttf::roles
