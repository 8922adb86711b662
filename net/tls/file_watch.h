// Files that a process reads again when they change: secrets, certificates, tokens.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::net {

// The state of a file when it was read last, as far as the file system shows it without a read.
struct FileSeen {
  timespec changed{};   // modification of the contents
  timespec touched{};   // modification of contents, name or permissions
  long long size = -1;  // -1: none was seen
  unsigned long long inode = 0;

  [[nodiscard]] static FileSeen of(const struct stat& status) noexcept {
    return {.changed = status.st_mtim,
            .touched = status.st_ctim,
            .size = status.st_size,
            .inode = status.st_ino};
  }
  // For a missing file: as if none had been seen.
  [[nodiscard]] static FileSeen of(const std::string& path) noexcept {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? of(status) : FileSeen{};
  }
  [[nodiscard]] bool operator==(const FileSeen& other) const noexcept {
    const auto is_same = [](const timespec& one, const timespec& two) {
      return one.tv_sec == two.tv_sec && one.tv_nsec == two.tv_nsec;
    };
    return is_same(changed, other.changed) && is_same(touched, other.touched) &&
           size == other.size && inode == other.inode;
  }
};

// Decides when to read the files, and warns when that fails. The last contents that were read stay
// in use until a reading succeeds. A failed reading is retried when the files change again, and
// every second otherwise, because the cause may have been their mode, the clock or the machine. Use
// by one thread at a time.
class FileWatch {
 public:
  using Warn = std::function<void(std::string_view)>;

  // The caller reads the files now. `stays`: the end of a warning, "the previous secrets stay in
  // use". `warn` may be empty.
  FileWatch(std::vector<std::string> paths, std::string stays, Warn warn);

  // Calls read() where that is due. A std::invalid_argument from it becomes a warning, once for
  // each state of the files; other exceptions reach the caller. A file that has been missing for 10
  // s, and so is not just being replaced, also causes a warning.
  template <class Read>
  void read_where_due(const Read& read) {
    if (!is_due()) return;
    try {
      read();
      succeeded();
    } catch (const std::invalid_argument& error) {
      failed(error.what());
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool is_due();
  void succeeded();
  void failed(std::string_view why);
  void look_for_gone(const std::vector<FileSeen>& now);

  const std::vector<std::string> paths_;
  const std::string stays_;
  const Warn warn_;
  std::vector<FileSeen> read_;    // at the last successful reading
  std::vector<FileSeen> tried_;   // at the last reading
  std::vector<FileSeen> warned_;  // at the last warning
  Clock::time_point tried_at_;
  std::optional<Clock::time_point> gone_since_;
  bool has_reported_gone_ = false;
};

}  // namespace disttf::net
