#include "storage/download/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "data/checksums.h"
#include "data/error.h"

namespace disttf::roles {
namespace {

constexpr std::chrono::milliseconds kProgressInterval{100};

std::error_code last_error() { return {errno, std::generic_category()}; }

[[noreturn]] void throw_disk(const std::string& operation, const std::filesystem::path& path,
                             std::error_code error) {
  throw DownloadError(error, "cannot " + operation + " " + path.string() + ": " + error.message());
}

// Whether this is an error page, of a mirror or of a captive portal, saved as data.
bool begins_like_page(std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    const char c = static_cast<char>(byte);
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    return c == '<';
  }
  return false;
}

std::string page_hint(bool looks_like_page) {
  return looks_like_page ? "; it begins like an HTML or XML page: an error page?" : "";
}

}  // namespace

PartFile::PartFile(const std::filesystem::path& directory, const RemoteFile& file,
                   OnProgress on_progress)
    : file_(file),
      directory_(directory),
      path_(directory / (file.name + ".part")),
      on_progress_(std::move(on_progress)),
      descriptor_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (!descriptor_.is_open()) throw_disk("write", path_, last_error());
  struct stat status {};
  if (fstat(descriptor_.number(), &status) != 0) throw_disk("read", path_, last_error());
  if (!S_ISREG(status.st_mode)) {
    throw DownloadError(std::make_error_code(std::errc::invalid_argument),
                        "cannot write " + path_.string() + ": it is not a regular file");
  }
  size_bytes_ = static_cast<std::uint64_t>(status.st_size);
  inherited_ = size_bytes_ > 0;
  // Of another file: no prefix of the wanted one can be longer than it.
  if (size_bytes_ > file_.size_bytes) restart();
}

PartFile::~PartFile() {
  // An empty part would only be in the way.
  if (!published_ && size_bytes_ == 0) static_cast<void>(unlink(path_.c_str()));
}

std::error_code PartFile::truncate() noexcept {
  if (ftruncate(descriptor_.number(), 0) != 0) return last_error();
  size_bytes_ = 0;
  inherited_ = false;
  looks_like_page_ = false;
  return {};
}

void PartFile::restart() {
  if (const auto error = truncate()) throw_disk("write", path_, error);
}

bool PartFile::is_right(std::string& why) const {
  if (!is_full()) {
    why = "has " + std::to_string(size_bytes_) + " bytes, expected " +
          std::to_string(file_.size_bytes) + page_hint(looks_like_page_);
    return false;
  }
  // Read back from the file, since its beginning may come from an earlier process.
  const std::string actual = data::sha256_file(path_);
  if (actual == file_.sha256) return true;
  why = "has SHA-256 " + actual + ", expected " + file_.sha256 + page_hint(looks_like_page_);
  return false;
}

void PartFile::publish() {
  const std::filesystem::path final_path = directory_ / file_.name;
  // Before the rename: a file under its final name is complete even after a power cut.
  if (fsync(descriptor_.number()) != 0) throw_disk("write", path_, last_error());
  if (std::rename(path_.c_str(), final_path.c_str()) != 0) {
    throw_disk("rename " + path_.string() + " to", final_path, last_error());
  }
  published_ = true;
  // Makes the rename survive a power cut. Some file systems cannot; the file is right anyway.
  const data::FileDescriptor folder(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.is_open()) static_cast<void>(fsync(folder.number()));
}

void PartFile::throw_if_disk_failed() {
  if (!disk_error_) return;
  // A resumable part helps the next run, but a full disk needs the space first.
  const int code = disk_error_.value();
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) static_cast<void>(unlink(path_.c_str()));
  throw_disk("write", path_, disk_error_);
}

std::error_code PartFile::refuse(std::string why) {
  refusal_ = std::move(why);
  return data::DataError::kWrongSize;
}

std::error_code PartFile::on_header(const net::HttpBodyInfo& info) {
  refusal_.clear();
  start_over_ = info.offset == 0;
  announced_bytes_ = info.total_bytes;
  start_bytes_ = info.offset;
  started_ = std::chrono::steady_clock::now();
  return {};
}

std::error_code PartFile::on_data(std::span<const std::byte> bytes) {
  const bool page = start_over_ ? begins_like_page(bytes) : looks_like_page_;
  // The announced size shows a wrong file before its first byte is stored.
  if (announced_bytes_ && *announced_bytes_ != file_.size_bytes) {
    return refuse("has " + std::to_string(*announced_bytes_) + " bytes, expected " +
                  std::to_string(file_.size_bytes) + page_hint(page));
  }
  // Drop the bytes of an earlier transfer only now that there are new ones.
  if (std::exchange(start_over_, false)) {
    disk_error_ = truncate();
    if (disk_error_) return disk_error_;
    looks_like_page_ = page;
  }
  // The announced size may be missing or wrong; a file never grows beyond the expected size.
  if (bytes.size() > file_.size_bytes - size_bytes_) {
    return refuse("has more than the expected " + std::to_string(file_.size_bytes) + " bytes" +
                  page_hint(page));
  }
  disk_error_ = append(bytes);
  if (!disk_error_) report_progress();
  return disk_error_;
}

std::error_code PartFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    // At an explicit offset, so that no other file position matters.
    const ssize_t written =
        pwrite(descriptor_.number(), bytes.data(), bytes.size(), static_cast<off_t>(size_bytes_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return last_error();
    size_bytes_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

void PartFile::report_progress() {
  if (!on_progress_) return;
  const auto now = std::chrono::steady_clock::now();
  // The last report is always made.
  if (now - reported_ < kProgressInterval && !is_full()) return;
  reported_ = now;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  // Bytes of this transfer only, since the time is that of this transfer.
  const auto bytes = static_cast<double>(size_bytes_ - start_bytes_);
  on_progress_({.file = file_.name,
                .bytes = size_bytes_,
                .total_bytes = file_.size_bytes,
                .bytes_per_second = seconds > 0 ? bytes / seconds : 0});
}

}  // namespace disttf::roles
