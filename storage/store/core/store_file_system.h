// A store as a file system that can also list a directory with sizes and times.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "data/file_system.h"

namespace disttf::roles {

// An entry of a directory.
struct StoreEntry {
  std::string name;
  bool is_directory = false;
  std::uint64_t size_bytes = 0;  // of a file
  // min(): unknown, as for a bucket's folders. (file_time_type{} is the year 2174 in libstdc++.)
  std::filesystem::file_time_type modified = std::filesystem::file_time_type::min();
};

class StoreFileSystem : public data::FileSystem {
 public:
  // In the order of names. nullopt: there is no such directory. Throws std::system_error.
  [[nodiscard]] virtual std::optional<std::vector<StoreEntry>> entries(const Path& directory) = 0;
  // The names of entries().
  [[nodiscard]] std::vector<std::string> names_in(const Path& directory,
                                                  std::error_code& error) final;
};

}  // namespace disttf::roles
