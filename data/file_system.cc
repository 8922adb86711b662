#include "data/file_system.h"

#include "data/error.h"

namespace disttf::data {
namespace {

using Path = std::filesystem::path;

Path parent_of(const Path& path) { return path.has_parent_path() ? path.parent_path() : Path("."); }

// Creates `path`, and its parent first if that is absent. An error names the whole path.
void create_below(FileSystem& files, const Path& path, const Path& whole) {
  std::error_code error;
  bool is_new = files.create_directory(path, error);
  if (error == std::errc::no_such_file_or_directory && parent_of(path) != path) {
    create_below(files, parent_of(path), whole);
    error.clear();
    is_new = files.create_directory(path, error);
  }
  if (error) throw std::system_error(error, "cannot create " + whole.string());
  // An existing folder was synced by its creator, or is not ours to sync.
  if (!is_new) return;
  const Path parent = parent_of(path);
  try {
    files.sync_directory(parent);
    // The process that created the parent may have been killed, or run out of disk space, before
    // the parent was durable.
    if (parent_of(parent) != parent) files.sync_directory(parent_of(parent));
  } catch (...) {
    // Without the sync a later call would find the folder and take it for durable.
    files.remove(path);
    throw;
  }
}

}  // namespace

void write_synced(FileSystem& files, const Path& path,
                  std::span<const std::span<const std::uint8_t>> parts) {
  const std::unique_ptr<NewFile> file = files.create(path);
  for (const auto& part : parts) file->write(part);
  file->sync();  // or a power failure could leave the name without contents
  file->take_name();
}

void write_durably(FileSystem& files, const Path& path,
                   std::span<const std::span<const std::uint8_t>> parts) {
  write_synced(files, path, parts);
  files.sync_directory(parent_of(path));
}

void create_directories(FileSystem& files, const Path& path) {
  const Path named = path.has_filename() ? path : path.parent_path();  // the path may be "DIR/"
  create_below(files, named, path);
}

std::error_code remove_all(FileSystem& files, const Path& path) {
  const std::error_code error = files.remove(path);
  if (error != std::errc::directory_not_empty && error != std::errc::file_exists) return error;
  std::error_code failed;
  for (const std::string& name : files.names_in(path, failed)) {
    // Goes on after an error, so that as much as possible is removed; the first error is returned.
    const std::error_code inner = remove_all(files, path / name);
    if (!failed) failed = inner;
  }
  return failed ? failed : files.remove(path);
}

std::vector<std::byte> read_file(FileSystem& files, const Path& path, std::size_t max_bytes) {
  const std::unique_ptr<OpenFile> file = files.open(path);
  if (file->size_bytes() > max_bytes) {
    throw std::system_error(DataError::kWrongSize,
                            path.string() + ": expected at most " + std::to_string(max_bytes) +
                                " bytes, found " + std::to_string(file->size_bytes()));
  }
  std::vector<std::byte> bytes(file->size_bytes());
  // The file can have been shortened since its size was read.
  bytes.resize(file->read(0, bytes));
  return bytes;
}

}  // namespace disttf::data
