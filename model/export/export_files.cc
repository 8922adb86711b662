#include "model/export/export_files.h"

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
  // After the files: their names in the directory must be on the disk before it is renamed.
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
      // rename() cannot replace a directory that is not empty, so the old one moves away first.
      rename_or_throw(files, directory, old);
      is_moved = true;
    }
    rename_or_throw(files, partial, directory);
  } catch (...) {
    if (is_moved) {
      // Best effort: the error that is reported is the one that led here.
      static_cast<void>(files.rename(old, directory));
    }
    static_cast<void>(data::remove_all(files, partial));
    throw;
  }
  // Makes the new name durable before the old files are removed: a power cut leaves one of them.
  files.sync_directory(parent_of(directory));
  if (is_moved) {
    // The export is complete; files that remain only take space.
    static_cast<void>(data::remove_all(files, old));
  }
}

}  // namespace disttf::roles
