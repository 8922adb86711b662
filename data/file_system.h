// The file system as whoever keeps data safe has to see it: nothing is durable before it was
// synced, and each of these operations may fail, or be the last one before a power cut. The real
// one is data/posix_file_system.h; tests have one that forgets what was not synced.
//
// What is durable: a file's contents after NewFile::sync(), a name that was given or taken in a
// directory after sync_directory() of it. Of what was not synced any part may be there after a
// power cut, in any order: a new name without its contents, a removal without the renaming before.
//
// Everything throws std::system_error with a sentence that names the path, unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace disttf::data {

// A file that is being written under a temporary name, beside the one that it is to have. Removed
// when destroyed, unless it has its name by then.
class NewFile {
 public:
  NewFile() = default;
  virtual ~NewFile() = default;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  // Appends.
  virtual void write(std::span<const std::uint8_t> bytes) = 0;
  // The contents are durable. After a failure they may never be: the file is to be given up.
  virtual void sync() = 0;
  // Takes its name, from what had it before. At most once.
  virtual void take_name() = 0;
};

class OpenFile {
 public:
  OpenFile() = default;
  virtual ~OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] virtual std::uint64_t size_bytes() const = 0;  // when it was opened
  // Reads from `offset` on; returns how many bytes that were: fewer where the file ends.
  [[nodiscard]] virtual std::size_t read(std::uint64_t offset, std::span<std::byte> to) const = 0;
};

// Callable from any thread.
class FileSystem {
 public:
  using Path = std::filesystem::path;

  FileSystem() = default;
  virtual ~FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;

  // A file that is to be `target`.
  [[nodiscard]] virtual std::unique_ptr<NewFile> create(const Path& target) = 0;
  // A regular file.
  [[nodiscard]] virtual std::unique_ptr<OpenFile> open(const Path& path) = 0;
  // Of the file at `path`; `error` is set where there is none. Does not throw.
  [[nodiscard]] virtual std::uint64_t size_of(const Path& path, std::error_code& error) = 0;
  // When the contents of a file, or the names in a directory, were last changed.
  [[nodiscard]] virtual std::filesystem::file_time_type last_write(const Path& path) = 0;
  // What this file system takes for the present, in this directory: the clock of last_write().
  [[nodiscard]] virtual std::filesystem::file_time_type now(const Path& directory) = 0;
  // The names in it, in no order. Sets `error`, and does not throw.
  [[nodiscard]] virtual std::vector<std::string> names_in(const Path& directory,
                                                          std::error_code& error) = 0;

  // These return why not, and do not throw. True: it is new; there may be such a directory already.
  virtual bool create_directory(const Path& path, std::error_code& error) = 0;
  // Of a file, or of a directory; onto no directory that has something in it.
  virtual std::error_code rename(const Path& from, const Path& to) = 0;
  // Another name, which nothing has yet, of a file.
  virtual std::error_code link(const Path& from, const Path& to) = 0;
  // A file, or an empty directory. No error where there is neither.
  virtual std::error_code remove(const Path& path) = 0;

  // The names that were given and taken in it are durable. Where a file system cannot do that at
  // all, nothing happens.
  virtual void sync_directory(const Path& directory) = 0;
};

// Writes a file whole, or not at all, and durably, from contents that lie in several places. On
// failure `path` is as before; but for one of the very last thing, the sync of the directory: then
// it has the new contents, and may lose them again with a power cut.
void write_durably(FileSystem& files, const std::filesystem::path& path,
                   std::span<const std::span<const std::uint8_t>> parts);
// The same, but for the name: that is durable once the directory is synced.
void write_synced(FileSystem& files, const std::filesystem::path& path,
                  std::span<const std::span<const std::uint8_t>> parts);

// The directory and those above it, each durable in the one that it is in.
void create_directories(FileSystem& files, const std::filesystem::path& path);

// A file, or a directory with all that is in it. No error where there is neither. Does not throw.
std::error_code remove_all(FileSystem& files, const std::filesystem::path& path);

// The whole file. One longer than `max_bytes` is refused with DataError::kWrongSize.
[[nodiscard]] std::vector<std::byte> read_file(FileSystem& files, const std::filesystem::path& path,
                                               std::size_t max_bytes);

}  // namespace disttf::data
