// Whether a file is still the one that was converted.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace disttf::data {

// A line that is another one once the file's bytes may have changed: its path, inode, size, and the
// times of its last writing and of its last change (ctime). The kernel alone sets ctime, so neither
// `touch -d` nor `cp -p` nor `rsync -t` brings an old one back; a file that another one was renamed
// over has that one's inode and ctime. A change of name or rights changes the line, too.
[[nodiscard]] inline std::string file_stamp(const std::filesystem::path& path,
                                            const struct stat& status) {
  const auto time = [](const timespec& at) {
    return std::to_string(at.tv_sec) + "." + std::to_string(at.tv_nsec);
  };
  // The path is absolute and may have any byte but zero in it, so its length goes first.
  const std::string absolute = std::filesystem::absolute(path).string();
  return std::to_string(absolute.size()) + " " + absolute + " inode " +
         std::to_string(status.st_ino) + " bytes " + std::to_string(status.st_size) + " written " +
         time(status.st_mtim) + " changed " + time(status.st_ctim) + "\n";
}

}  // namespace disttf::data
