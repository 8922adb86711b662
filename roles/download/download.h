// Fetching the data set's files into a directory: from mirrors in turn, verified, by one process
// of those that share the directory.
//
// A file appears under its final name only when it is whole and its checksum right: it grows as
// "<name>.part" and is renamed once it is synced. A .part that an earlier run left is resumed.
// ".download.lock" in the directory is flock'd meanwhile; a holder that dies lets go of it.
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

#include "net/http/http_proxy.h"
#include "net/transport/interrupt.h"

namespace disttf::roles {

struct RemoteFile {
  std::string name;  // of the file, in the directory and below each mirror's URL
  std::uint64_t size_bytes = 0;
  std::string sha256;  // lower-case hex
};

// Where the four MNIST files are, in the order to try.
[[nodiscard]] std::vector<std::string> default_mirrors();

// One call a while (about ten a second at most), from the thread that fetches.
struct DownloadProgress {
  std::string_view file;
  std::uint64_t bytes = 0;  // of the file, resumed ones included
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
  std::optional<net::Deadline> deadline;  // for all of it, waiting for the lock included
  // For one file; an attempt that got further than all before it does not count.
  int attempts_per_mirror = 3;
  // Put the right file in the place of one of that name with other contents. Else that is an error:
  // other data sets (Fashion-MNIST) use the same four names.
  bool replace_wrong = false;
  std::function<void(std::string_view)> on_message;  // a sentence for the log
  std::function<void(std::string_view)> on_result;   // "Successfully downloaded ... bytes."
  std::function<void(const DownloadProgress&)> on_progress;
};

// what() is the sentence as given, without the code's message behind it. Several lines, one for
// each mirror, when no mirror could be had.
class DownloadError : public std::system_error {
 public:
  DownloadError(std::error_code code, std::string sentence)
      : std::system_error(code), sentence_(std::move(sentence)) {}
  [[nodiscard]] const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  std::string sentence_;
};

// Returns with every file of `files` whole and right in the directory, which is made if need be.
// Files that are right already are left alone, and without anything to fetch nothing is written.
// Where another process is fetching into the directory, waits for it; if that fails, fails alike
// rather than try the same again.
// Throws std::invalid_argument (a mirror's URL or a proxy setting is malformed), std::system_error
// (a file that is there cannot be read, no more descriptors) or its subclass DownloadError:
// the directory cannot be written, the disk is full (ENOSPC), interrupted (ECANCELED), the deadline
// has come, a file is in the way (replace_wrong), no mirror could be had.
void fetch_files(std::span<const RemoteFile> files, const DownloadOptions& options,
                 const net::Interrupt& interrupt);

}  // namespace disttf::roles
