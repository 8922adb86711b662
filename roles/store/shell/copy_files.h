// Copies files between this machine and stores, several at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "roles/store/shell/storage.h"

namespace disttf::roles {

struct FileToCopy {
  std::filesystem::path from;
  std::filesystem::path to;
  std::uint64_t size_bytes = 0;  // of the first, and when it was written
  std::filesystem::file_time_type modified = std::filesystem::file_time_type::min();
};

// Adds all that lies in the directory, with what lies in those in it. False: there is none. Throws
// std::system_error.
[[nodiscard]] bool collect_files(Storage& storage, const std::filesystem::path& from,
                                 const std::filesystem::path& to, std::vector<FileToCopy>& files);

// Of one file. Throws std::system_error where there is none.
[[nodiscard]] FileToCopy file_to_copy(Storage& storage, const std::filesystem::path& from,
                                      const std::filesystem::path& to);

// Each is there whole or not at all; directories that are missing are made. Logs once a second how
// far it is. Returns how many bytes there were. Throws what the first that failed threw.
std::uint64_t copy_files(std::vector<FileToCopy> files, std::size_t threads);

}  // namespace disttf::roles
