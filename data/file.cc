#include "data/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "data/error.h"
#include "data/posix_file_system.h"

namespace disttf::data {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (is_open()) ::close(number_);
}

FileDescriptor open_for_reading(const std::filesystem::path& path, struct stat& status) {
  // Non-blocking, because opening a named pipe would otherwise wait forever for a writer.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) {
    fail(errno, "cannot read " + path.string());
  }
  // fstat() on the open descriptor, not stat() on the path, so the file that is checked is the one
  // that is read.
  if (S_ISDIR(status.st_mode)) fail(EISDIR, "cannot read " + path.string());
  if (!S_ISREG(status.st_mode)) {
    throw std::system_error(DataError::kNotRegularFile, "cannot read " + path.string());
  }
  return file;
}

std::size_t read_at(const FileDescriptor& file, std::uint64_t offset, std::span<std::byte> to,
                    const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t count = ::pread(file.number(), to.data() + done, to.size() - done,
                                  static_cast<off_t>(offset + done));
    if (count == 0) break;
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      fail(errno, "cannot read " + path.string());
    }
  }
  return done;
}

std::vector<std::uint8_t> read_open_file(const FileDescriptor& file, std::size_t size_bytes,
                                         const std::filesystem::path& path) {
  std::vector<std::uint8_t> bytes(size_bytes);
  // The file may have been shortened meanwhile; the caller compares the size.
  bytes.resize(read_at(file, 0, std::as_writable_bytes(std::span(bytes)), path));
  return bytes;
}

std::vector<std::uint8_t> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  struct stat status {};
  const FileDescriptor file = open_for_reading(path, status);
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (size_bytes > max_bytes) {
    throw std::system_error(DataError::kWrongSize,
                            path.string() + ": expected at most " + std::to_string(max_bytes) +
                                " bytes, found " + std::to_string(size_bytes));
  }
  return read_open_file(file, size_bytes, path);
}

void sync_directory(const std::filesystem::path& directory, int (*sync)(int)) {
  const FileDescriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) {
    if (errno == EACCES) return;  // a directory may be writable but not readable
    fail(errno, "cannot sync " + directory.string());
  }
  int error = 0;
  do {
    error = sync(opened.number()) == 0 ? 0 : errno;
  } while (error == EINTR);
  // The file system has no such operation. Any other error means that the name may not be durable.
  const bool is_impossible =
      error == EINVAL || error == ENOTSUP || error == ENOSYS || error == EROFS;
  if (error != 0 && !is_impossible) fail(error, "cannot sync " + directory.string());
}

struct stat write_file_atomically(const std::filesystem::path& path,
                                  std::span<const std::uint8_t> bytes) {
  return write_file_atomically(path, std::span(&bytes, 1));
}

struct stat write_file_atomically(const std::filesystem::path& path,
                                  std::span<const std::span<const std::uint8_t>> parts) {
  PosixNewFile file(path);
  for (const auto& part : parts) file.write(part);
  // The order makes the write durable: contents, then name, then directory.
  file.sync();
  file.take_name();
  sync_directory(directory_of(path));
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail(errno, "cannot read " + path.string());
  return status;
}

void replace_directory(const std::filesystem::path& made, const std::filesystem::path& target) {
  constexpr int kMostAttempts = 1000;  // far more than callers get in between
  const std::filesystem::path old = made.string() + ".old";
  for (int attempt = 1;; ++attempt) {
    std::error_code ignored;  // there may be none
    std::error_code error;
    // rename() cannot replace a directory that is not empty, so the old one is moved away first. A
    // concurrent caller may give its directory the name between the two renames.
    std::filesystem::rename(target, old, ignored);
    std::filesystem::rename(made, target, error);
    const bool is_taken =
        error == std::errc::directory_not_empty || error == std::errc::file_exists;
    if (error && (!is_taken || attempt == kMostAttempts)) {
      std::filesystem::rename(old, target, ignored);
      throw std::system_error(error, "cannot rename " + made.string() + " to " + target.string());
    }
    std::filesystem::remove_all(old, ignored);
    if (!error) return;
  }
}

// Uses an unnamed file, so a killed process leaves none. On a file system without unnamed files
// (NFS) the file always has the same name, so the next call removes a leftover.
std::filesystem::file_time_type file_system_now(const std::filesystem::path& directory) {
  const std::filesystem::path named = directory / ("now" + std::string(kTemporaryMark) + "clock");
  FileDescriptor file(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  const bool has_name = !file.is_open();
  if (has_name) {
    file = FileDescriptor(::open(named.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    if (!file.is_open()) fail(errno, "cannot create a file in " + directory.string());
  }
  struct stat status {};
  // A new unnamed file has the current time; the named one may be old and is updated first.
  const bool is_dated = (!has_name || ::futimens(file.number(), nullptr) == 0) &&
                        ::fstat(file.number(), &status) == 0;
  // Saved, because unlink() below can change it.
  const int error = errno;
  if (has_name) ::unlink(named.c_str());
  if (!is_dated) fail(error, "cannot get the time of a file in " + directory.string());
  return std::chrono::file_clock::from_sys(std::chrono::sys_time<std::chrono::nanoseconds>(
      std::chrono::seconds(status.st_mtim.tv_sec) +
      std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
}

void remove_abandoned_temporaries(const std::filesystem::path& path,
                                  std::chrono::seconds age) noexcept {
  try {
    const std::string prefix = path.filename().string() + std::string(kTemporaryMark);
    // Ages are compared on the file system's clock, because its files may have been dated by
    // another machine.
    const auto oldest = file_system_now(directory_of(path)) - age;
    for (const auto& entry : std::filesystem::directory_iterator(directory_of(path))) {
      // The age protects the file of a writer that is still at work.
      if (entry.path().filename().string().starts_with(prefix) &&
          entry.last_write_time() < oldest) {
        std::filesystem::remove(entry.path());
      }
    }
  } catch (const std::exception&) {
    // Cleanup is optional: nothing depends on it, and the next writer tries again.
    return;
  }
}

DirectoryLock::DirectoryLock(const std::filesystem::path& directory,
                             std::chrono::milliseconds patience) noexcept {
  // The kernel releases the lock when the descriptor is closed, so a killed holder leaves none
  // behind.
  FileDescriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return;
  // flock has no timeout, and a blocking call could wait forever for a stopped process, so the lock
  // is polled. The interval is far below the time for which a holder usually keeps the lock.
  constexpr std::chrono::milliseconds kInterval{10};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(opened.number(), LOCK_EX | LOCK_NB) != 0) {
    // Without locks on this file system the caller goes on without one: work may then be done
    // twice, but files are still replaced atomically.
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    if (std::chrono::steady_clock::now() >= deadline) return;
    std::this_thread::sleep_for(kInterval);
  }
  directory_ = std::move(opened);
}

}  // namespace disttf::data
