// Detects whether a file changed since its conversion.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace disttf::data {

// Returns a line that changes if the file's bytes may have changed: path, inode, size, and the
// times of the last write and the last status change (ctime). Only the kernel sets ctime, so `touch
// -d`, `cp -p` and `rsync -t` cannot restore an old one. A file that another was renamed over gets
// that file's inode and ctime. A change of name or permissions also changes the line.
[[nodiscard]] inline std::string file_fingerprint(const std::filesystem::path& path,
                                                  const struct stat& status) {
  const auto time = [](const timespec& at) {
    return std::to_string(at.tv_sec) + "." + std::to_string(at.tv_nsec);
  };
  // The path is absolute and may contain any byte but zero, so its length comes first.
  const std::string absolute = std::filesystem::absolute(path).string();
  return std::to_string(absolute.size()) + " " + absolute + " inode " +
         std::to_string(status.st_ino) + " bytes " + std::to_string(status.st_size) + " written " +
         time(status.st_mtim) + " changed " + time(status.st_ctim) + "\n";
}

}  // namespace disttf::data
