// The file system as code that keeps data safe sees it: nothing is durable before it is synced, and
// each operation may fail or be the last one before a power failure. The real implementation is
// data/posix_file_system.h; tests use one that loses everything unsynced.
//
// What is durable: a file's contents after NewFile::sync(), and a name that was added to or removed
// from a directory after sync_directory() of it. After a power failure any part of the unsynced
// changes may be present, in any order: a new name without its contents, or a removal without an
// earlier rename.
//
// Every function throws std::system_error with a sentence that names the path, unless its comment
// says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace disttf::data {

// A file that is written under a temporary name, beside its target. The destructor removes it
// unless it has taken its target name.
class NewFile {
 public:
  NewFile() = default;
  virtual ~NewFile() = default;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  // Appends.
  virtual void write(std::span<const std::uint8_t> bytes) = 0;
  // Lets all users run the file, where the file system has such a mode. To be called before sync().
  virtual void allow_execution() noexcept {}
  // Makes the contents durable. After a failure they may never become durable, and the caller must
  // discard the file.
  virtual void sync() = 0;
  // Renames the file to its target, replacing any existing file. Call at most once.
  virtual void take_name() = 0;
};

class OpenFile {
 public:
  OpenFile() = default;
  virtual ~OpenFile() = default;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] virtual std::uint64_t size_bytes() const = 0;  // at the time of open()
  // Reads from `offset`; returns the number of bytes read, fewer than requested at the end of the
  // file.
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

  // Creates a file whose target name is `target`.
  [[nodiscard]] virtual std::unique_ptr<NewFile> create(const Path& target) = 0;
  // Opens a regular file.
  [[nodiscard]] virtual std::unique_ptr<OpenFile> open(const Path& path) = 0;
  // Returns the size of the file at `path`; sets `error` if there is none. Does not throw.
  [[nodiscard]] virtual std::uint64_t size_of(const Path& path, std::error_code& error) = 0;
  // Returns when a file's contents, or the names in a directory, last changed.
  [[nodiscard]] virtual std::filesystem::file_time_type last_write(const Path& path) = 0;
  // Returns the current time of this file system, in this directory: the clock of last_write().
  [[nodiscard]] virtual std::filesystem::file_time_type now(const Path& directory) = 0;
  // Returns the names in a directory, unordered. Sets `error` and does not throw.
  [[nodiscard]] virtual std::vector<std::string> names_in(const Path& directory,
                                                          std::error_code& error) = 0;

  // The following return an error and do not throw. Returns true if the directory is new; an
  // existing directory is no error.
  virtual bool create_directory(const Path& path, std::error_code& error) = 0;
  // Renames a file or a directory; the target must not be a non-empty directory.
  virtual std::error_code rename(const Path& from, const Path& to) = 0;
  // Adds another, unused name to a file.
  virtual std::error_code link(const Path& from, const Path& to) = 0;
  // Removes a file or an empty directory. An absent path is no error.
  virtual std::error_code remove(const Path& path) = 0;

  // Makes added and removed names in the directory durable. Does nothing on a file system without
  // support for this.
  virtual void sync_directory(const Path& directory) = 0;
};

// The bytes of a text, to be written.
[[nodiscard]] inline std::span<const std::uint8_t> bytes_in(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Writes a file atomically and durably, from contents in several buffers. On failure `path` is
// unchanged, with one exception: if the final sync of the directory fails, `path` has the new
// contents but may lose them in a power failure.
void write_durably(FileSystem& files, const std::filesystem::path& path,
                   std::span<const std::span<const std::uint8_t>> parts);
// The same, but the name becomes durable only when the directory is synced.
void write_synced(FileSystem& files, const std::filesystem::path& path,
                  std::span<const std::span<const std::uint8_t>> parts);

// Creates the directory and its parents, each durable in its own parent.
void create_directories(FileSystem& files, const std::filesystem::path& path);

// Removes a file, or a directory with all its contents. An absent path is no error. Does not throw.
std::error_code remove_all(FileSystem& files, const std::filesystem::path& path);

// Returns the whole file. Refuses a file longer than `max_bytes` with DataError::kWrongSize.
[[nodiscard]] std::vector<std::byte> read_file(FileSystem& files, const std::filesystem::path& path,
                                               std::size_t max_bytes);

}  // namespace disttf::data
