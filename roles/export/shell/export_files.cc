#include "roles/export/shell/export_files.h"

#include <cstdint>
#include <span>
#include <system_error>

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;

Path parent_of(const Path& directory) {
  return directory.has_parent_path() ? directory.parent_path() : Path(".");
}

Path beside(const Path& directory, const std::string& mark) {
  return parent_of(directory) / (directory.filename().string() + ".disttf-" + mark);
}

void rename_or_throw(data::FileSystem& files, const Path& from, const Path& to) {
  if (const std::error_code error = files.rename(from, to)) {
    throw std::system_error(error, "cannot rename " + from.string() + " to " + to.string());
  }
}

void write_contents(data::FileSystem& files, const Path& directory,
                    const DirectoryFiles& contents) {
  data::create_directories(files, directory);
  for (const auto& [name, text] : contents) {
    const Path path = directory / name;
    data::create_directories(files, path.parent_path());
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    data::write_durably(files, path, std::span(&bytes, 1));
  }
  files.sync_directory(directory);
}

}  // namespace

void write_directory(data::FileSystem& files, const Path& directory, const DirectoryFiles& contents,
                     const std::string& mark, bool replaces) {
  const Path partial = beside(directory, mark);
  const Path old = beside(directory, mark + "-old");
  bool is_moved = false;
  try {
    write_contents(files, partial, contents);
    if (replaces) {
      rename_or_throw(files, directory, old);
      is_moved = true;
    }
    rename_or_throw(files, partial, directory);
  } catch (...) {
    if (is_moved) {
      static_cast<void>(files.rename(old, directory));
    }
    static_cast<void>(data::remove_all(files, partial));
    throw;
  }
  files.sync_directory(parent_of(directory));
  if (is_moved) {
    static_cast<void>(data::remove_all(files, old));
  }
}

}  // namespace disttf::roles
