// Files as this folder needs them: read whole, written all or not at all, and a lock on
// a directory so that work which several tasks want done is done once.
//
// Everything throws std::system_error with a sentence that names the path, unless said otherwise.
// Callable from any thread.
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
  // Hands the descriptor to the caller, who closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

// Opens a regular file for reading; `status` is that file's, not the path's of a moment later.
[[nodiscard]] FileDescriptor open_for_reading(const std::filesystem::path& path,
                                              struct stat& status);

// The first `size_bytes` of an open file, fewer if it ends before; `path` is for the sentence.
[[nodiscard]] std::vector<std::uint8_t> read_open_file(const FileDescriptor& file,
                                                       std::size_t size_bytes,
                                                       const std::filesystem::path& path);

// The whole file. A file longer than `max_bytes` is refused with DataError::kWrongSize.
[[nodiscard]] std::vector<std::uint8_t> read_file(const std::filesystem::path& path,
                                                  std::size_t max_bytes);

// Writes `bytes` to a new file beside `path`, syncs it, renames it to `path`: whoever opens `path`
// sees the old contents or the new ones, never a part, not even after a power cut. On failure the
// new file is gone and `path` is as before; but for one of sync_directory(), which comes last:
// `path` has the new contents then, and may lose them again with a power cut. Several writers at
// once do no harm: the last one wins. Returns what fstat says of the file written, under its final
// name.
struct stat write_file_atomically(const std::filesystem::path& path,
                                  std::span<const std::uint8_t> bytes);
// The same with contents that lie in several places, one after the other.
struct stat write_file_atomically(const std::filesystem::path& path,
                                  std::span<const std::span<const std::uint8_t>> parts);

// So that a name that was given in `directory` survives a power cut. Where a file system cannot do
// that, nothing happens; where it tries and fails (a disk's error, a full quota) std::system_error.
// `sync` is fsync, but for tests: returns 0, or -1 and sets errno.
void sync_directory(const std::filesystem::path& directory, int (*sync)(int) = &::fsync);

// What the file system of `directory` takes for the present, by a file that is made there and gone
// again: the clock by which files of other machines are dated, too, and not this machine's.
[[nodiscard]] std::filesystem::file_time_type file_system_now(
    const std::filesystem::path& directory);

// Removes what writers of `path` that were killed have left behind: their temporary files, once
// they are `age` old (a living writer is done long before). Never throws.
void remove_abandoned_temporaries(const std::filesystem::path& path,
                                  std::chrono::seconds age) noexcept;

// An advisory lock on a directory, held until destroyed; no file is left behind. It saves work and
// guards nothing: when it cannot be had (a file system without locks, or its holder stopped for
// longer than `patience`), the object simply does not hold it. Never throws.
class DirectoryLock {
 public:
  DirectoryLock(const std::filesystem::path& directory,
                std::chrono::milliseconds patience) noexcept;
  [[nodiscard]] bool is_held() const noexcept { return directory_.is_open(); }

 private:
  FileDescriptor directory_;
};

}  // namespace disttf::data
