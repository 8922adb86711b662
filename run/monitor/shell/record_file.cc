#include "run/monitor/shell/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

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

}  // namespace disttf::roles
