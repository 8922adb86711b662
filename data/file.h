// File operations of this folder: reading a whole file, writing a file atomically, and a lock on a
// directory that lets several tasks share work instead of repeating it.
//
// Every function throws std::system_error with a sentence that names the path, unless its comment
// says otherwise. Callable from any thread.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace disttf::data {

// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) noexcept : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();
  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }
  // Transfers the descriptor to the caller, which must close it.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

// Opens a regular file for reading. `status` describes the opened file, not whatever the path
// refers to a moment later.
[[nodiscard]] FileDescriptor open_for_reading(const std::filesystem::path& path,
                                              struct stat& status);

// Reads from `offset` on, until `to` is full or the file ends; returns the number of bytes. `path`
// is for error messages.
std::size_t read_at(const FileDescriptor& file, std::uint64_t offset, std::span<std::byte> to,
                    const std::filesystem::path& path);

// Returns the first `size_bytes` of an open file, fewer if the file is shorter. `path` is for error
// messages.
[[nodiscard]] std::vector<std::uint8_t> read_open_file(const FileDescriptor& file,
                                                       std::size_t size_bytes,
                                                       const std::filesystem::path& path);

// Returns the whole file. Refuses a file longer than `max_bytes` with DataError::kWrongSize.
[[nodiscard]] std::vector<std::uint8_t> read_file(const std::filesystem::path& path,
                                                  std::size_t max_bytes);

// Writes `bytes` to a new file beside `path`, syncs it and renames it to `path`. A reader of `path`
// sees the old contents or the new ones, never a part, even after a power failure. On failure the
// new file is removed and `path` is unchanged, with one exception: if the final sync_directory()
// fails, `path` has the new contents but may lose them in a power failure. Concurrent writers are
// safe: the last one wins. Returns the fstat of the written file under its final name.
struct stat write_file_atomically(const std::filesystem::path& path,
                                  std::span<const std::uint8_t> bytes);
// The same for contents in several buffers, one after the other.
struct stat write_file_atomically(const std::filesystem::path& path,
                                  std::span<const std::span<const std::uint8_t>> parts);

// Makes names created in `directory` durable, so they survive a power failure. Does nothing on a
// file system that does not support this; throws std::system_error if the sync fails (a disk error,
// a full quota). `sync` is fsync, replaceable for tests: it returns 0, or -1 and sets errno.
void sync_directory(const std::filesystem::path& directory, int (*sync)(int) = &::fsync);

// Gives the directory `made` the name `target`, in the same folder, and removes the directory that
// had that name. A crash in between may leave no directory of that name. Concurrent callers with
// the same target are safe: the last one wins. Does not sync.
void replace_directory(const std::filesystem::path& made, const std::filesystem::path& target);

// Returns the current time according to the file system of `directory`, found by creating and
// removing a file there. This is the clock that dates files, including those of other machines; it
// may differ from this machine's clock.
[[nodiscard]] std::filesystem::file_time_type file_system_now(
    const std::filesystem::path& directory);

// Removes temporary files of `path` that killed writers left behind, once they are `age` old (a
// live writer finishes long before). Never throws.
void remove_abandoned_temporaries(const std::filesystem::path& path,
                                  std::chrono::seconds age) noexcept;

// An advisory lock on a directory, held until destruction; no file remains. The lock only saves
// duplicate work and protects nothing: if it cannot be acquired (a file system without locks, or a
// holder that is stopped for longer than `patience`), the object does not hold it. Never throws.
class DirectoryLock {
 public:
  DirectoryLock(const std::filesystem::path& directory,
                std::chrono::milliseconds patience) noexcept;
  [[nodiscard]] bool is_held() const noexcept { return directory_.is_open(); }

 private:
  FileDescriptor directory_;
};

}  // namespace disttf::data
