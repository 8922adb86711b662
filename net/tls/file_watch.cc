#include "net/tls/file_watch.h"

#include <algorithm>
#include <utility>

#include "net/wire/text.h"

namespace disttf::net {
namespace {

// Every use of the credentials queries the watch; a file that cannot be used is read again at most
// once in kRetry. Replacing a file takes an instant, so one that is missing for kGone is reported.
constexpr std::chrono::seconds kRetry{1};
constexpr std::chrono::seconds kGone{10};

std::vector<FileSeen> look_at(const std::vector<std::string>& paths) {
  std::vector<FileSeen> seen;
  seen.reserve(paths.size());
  for (const std::string& path : paths) seen.push_back(FileSeen::of(path));
  return seen;
}

}  // namespace

FileWatch::FileWatch(std::vector<std::string> paths, std::string stays, Warn warn)
    : paths_(std::move(paths)),
      stays_(std::move(stays)),
      warn_(std::move(warn)),
      // Recorded before the owner reads the files: a change in between makes them due again.
      read_(look_at(paths_)),
      tried_(read_) {}

bool FileWatch::is_due() {
  std::vector<FileSeen> now = look_at(paths_);
  look_for_gone(now);
  // A missing file may be about to be replaced: not read.
  if (gone_since_ || now == read_) return false;
  if (now == tried_ && Clock::now() - tried_at_ < kRetry) return false;
  // For the same reason, recorded before the caller reads them.
  tried_ = std::move(now);
  tried_at_ = Clock::now();
  return true;
}

void FileWatch::look_for_gone(const std::vector<FileSeen>& now) {
  const auto gone = std::ranges::find(now, FileSeen{});
  if (gone == now.end()) {
    gone_since_.reset();
    has_reported_gone_ = false;
    return;
  }
  if (!gone_since_) gone_since_ = Clock::now();
  if (has_reported_gone_ || Clock::now() - *gone_since_ < kGone) return;
  has_reported_gone_ = true;
  const std::string& path = paths_[static_cast<std::size_t>(gone - now.begin())];
  if (warn_) warn_(quoted(path) + " no longer exists; " + stays_);
}

void FileWatch::succeeded() {
  read_ = tried_;
  warned_.clear();
}

void FileWatch::failed(std::string_view why) {
  // One warning for each state of the files.
  if (tried_ == warned_) return;
  warned_ = tried_;
  if (warn_) warn_(std::string(why) + "; " + stays_);
}

}  // namespace disttf::net
