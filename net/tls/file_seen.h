// The state of a file when it was read last, as far as the file system shows it without a read.
#pragma once

#include <sys/stat.h>

#include <ctime>
#include <string>

namespace disttf::net {

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

}  // namespace disttf::net
