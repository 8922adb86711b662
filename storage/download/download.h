// Downloads the data set's files into a directory: from mirrors in turn, verified, by one of the
// processes that share the directory.
//
// A file appears under its final name only when it is whole and its checksum is right: it grows as
// "<name>.part" and is renamed after fsync. A .part of an earlier run is resumed. The process holds
// flock on ".download.lock" in the directory meanwhile; the kernel unlocks it if the process dies.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/file.h"
#include "net/http/http_proxy.h"
#include "net/waiting/interrupt.h"

namespace disttf::roles {

struct RemoteFile {
  std::string name;  // in the directory, and below each mirror's URL
  std::uint64_t size_bytes = 0;
  std::string sha256;  // lower-case hex
};

// Mirrors of the four MNIST files, in the order to try.
[[nodiscard]] std::vector<std::string> default_mirrors();

// Passed to a callback at most ten times a second, on the thread that downloads.
struct DownloadProgress {
  std::string_view file;
  std::uint64_t bytes = 0;  // of the file, including resumed ones
  std::uint64_t total_bytes = 0;
  double bytes_per_second = 0;  // of this transfer
};

struct DownloadOptions {
  std::filesystem::path directory;
  std::vector<std::string> mirrors = default_mirrors();  // --data_url; a file's name is appended
  net::ProxySettings proxy;
  std::string ca_file;  // empty: the system's
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds stall_timeout{15000};
  std::optional<net::Deadline> deadline;  // for the whole call, including the wait for the lock
  // For one file. An attempt that got further than all earlier ones does not count.
  int attempts_per_mirror = 3;
  // Replace a file of the same name whose contents are wrong. Otherwise that is an error: other
  // data sets (Fashion-MNIST) use the same four names.
  bool replace_wrong = false;
  std::function<void(std::string_view)> on_message;  // a sentence for the log
  std::function<void(std::string_view)> on_result;   // "Successfully downloaded ... bytes."
  std::function<void(const DownloadProgress&)> on_progress;
};

// what() is the given sentence without the code's message. It has several lines, one for each
// mirror, when every mirror failed.
class DownloadError : public std::system_error {
 public:
  DownloadError(std::error_code code, std::string sentence)
      : std::system_error(code), sentence_(std::move(sentence)) {}
  [[nodiscard]] const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  std::string sentence_;
};

// Returns when every file of `files` is whole and right in the directory, which is created if
// needed. Leaves right files alone; writes nothing if all are right. If another process is
// downloading into the directory, waits for it, and fails with its error if it fails instead of
// trying the same again.
// Throws std::invalid_argument (a mirror's URL or a proxy setting is malformed), std::system_error
// (an existing file cannot be read, no more descriptors) or its subclass DownloadError: the
// directory cannot be written, the disk is full (ENOSPC), interrupted (ECANCELED), the deadline
// passed, a file is in the way (replace_wrong), every mirror failed.
void fetch_files(std::span<const RemoteFile> files, const DownloadOptions& options,
                 const net::Interrupt& interrupt);

// Lets one process at a time download into a directory; those that wait learn the result.
//
// flock on ".download.lock": the kernel unlocks it however the holder dies. The file stays, because
// removing it would let two processes lock two files of that name. A holder whose mirrors all
// failed leaves its error in the file for the processes that wait.
class DownloadLock {
 public:
  // Waits for the holder; calls `on_wait` before it waits. Throws DownloadError: the file cannot be
  // created or locked, interrupted (ECANCELED), deadline (ETIMEDOUT).
  DownloadLock(const std::filesystem::path& directory, const std::function<void()>& on_wait,
               std::optional<net::Deadline> deadline, const net::Interrupt& interrupt);

  // The error that the previous holder left; empty if it succeeded or died, or if the lock was
  // free.
  [[nodiscard]] const std::string& inherited_failure() const noexcept { return inherited_failure_; }
  // Leaves `sentence` for the processes that wait now. Best effort.
  void leave_failure(std::string_view sentence) noexcept;

 private:
  void read_failure();

  data::FileDescriptor file_;  // closing it unlocks
  std::string inherited_failure_;
};

}  // namespace disttf::roles
