// Copies files between this machine and stores, several at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "storage/store/shell/storage.h"

namespace disttf::roles {

struct FileToCopy {
  std::filesystem::path from;
  std::filesystem::path to;
  std::uint64_t size_bytes = 0;  // of `from`, with its time
  std::filesystem::file_time_type modified = std::filesystem::file_time_type::min();
};

// Adds all files in the directory and its subdirectories. False: there is no such directory. Throws
// std::system_error.
[[nodiscard]] bool collect_files(Storage& storage, const std::filesystem::path& from,
                                 const std::filesystem::path& to, std::vector<FileToCopy>& files);

// For one file. Throws std::system_error if it does not exist.
[[nodiscard]] FileToCopy file_to_copy(Storage& storage, const std::filesystem::path& from,
                                      const std::filesystem::path& to);

// Copies the files, creating missing directories. A target appears when it is complete. Logs the
// progress once a second. Returns the number of bytes. Rethrows the first error.
std::uint64_t copy_files(std::vector<FileToCopy> files, std::size_t threads);

}  // namespace disttf::roles
