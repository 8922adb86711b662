#include "storage/store/core/store_file_system.h"

#include "storage/store/core/store_error.h"

namespace disttf::roles {

std::vector<std::string> StoreFileSystem::names_in(const Path& directory, std::error_code& error) {
  std::vector<std::string> names;
  // Callers of data::FileSystem expect a code, but a store throws.
  error = error_code_of([&]() -> std::error_code {
    const auto found = entries(directory);
    if (!found) return StoreError::kNotFound;
    for (const StoreEntry& entry : *found) names.push_back(entry.name);
    return {};
  });
  return names;
}

}  // namespace disttf::roles
