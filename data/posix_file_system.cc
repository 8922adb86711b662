#include "data/posix_file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace disttf::data {
namespace {

using Path = std::filesystem::path;

[[noreturn]] void give_up(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class PosixOpenFile final : public OpenFile {
 public:
  explicit PosixOpenFile(const Path& path) : path_(path), file_(open_for_reading(path, status_)) {}
  [[nodiscard]] std::uint64_t size_bytes() const override {
    return static_cast<std::uint64_t>(status_.st_size);
  }
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::byte> to) const override {
    return read_at(file_, offset, to, path_);
  }

 private:
  const Path path_;
  struct stat status_ {};
  FileDescriptor file_;
};

}  // namespace

PosixNewFile::PosixNewFile(const Path& target)
    : target_(target), path_(target.string() + std::string(kTemporaryMark) + "XXXXXX") {
  // In the target's folder, because rename() works only within one file system.
  file_ = FileDescriptor(::mkostemp(path_.data(), O_CLOEXEC));
  if (!file_.is_open()) {
    const Path directory = target.has_parent_path() ? target.parent_path() : Path(".");
    give_up("cannot create a file in " + directory.string());
  }
}

PosixNewFile::~PosixNewFile() {
  // A write that failed leaves no temporary file. After take_name() the path is empty, and the file
  // stays.
  if (!path_.empty()) ::unlink(path_.c_str());
}

void PosixNewFile::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.number(), bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      give_up("cannot write " + path_);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void PosixNewFile::sync() {
  if (::fchmod(file_.number(), mode_) != 0) give_up("cannot write " + target_.string());
  // fsync() also reports errors of earlier writes that the kernel had only buffered.
  if (::fsync(file_.number()) != 0) give_up("cannot write " + target_.string());
}

void PosixNewFile::take_name() {
  if (::rename(path_.c_str(), target_.c_str()) != 0) give_up("cannot create " + target_.string());
  // Only after the rename has succeeded: until then the destructor has to remove the file.
  path_.clear();
}

std::unique_ptr<NewFile> PosixFileSystem::create(const Path& target) {
  return std::make_unique<PosixNewFile>(target);
}

std::unique_ptr<OpenFile> PosixFileSystem::open(const Path& path) {
  return std::make_unique<PosixOpenFile>(path);
}

std::uint64_t PosixFileSystem::size_of(const Path& path, std::error_code& error) {
  struct stat status {};
  error.clear();
  if (::stat(path.c_str(), &status) != 0) error.assign(errno, std::generic_category());
  return static_cast<std::uint64_t>(status.st_size);
}

std::filesystem::file_time_type PosixFileSystem::last_write(const Path& path) {
  return std::filesystem::last_write_time(path);
}

std::filesystem::file_time_type PosixFileSystem::now(const Path& directory) {
  return file_system_now(directory);
}

std::vector<std::string> PosixFileSystem::names_in(const Path& directory, std::error_code& error) {
  std::vector<std::string> names;
  error.clear();
  std::filesystem::directory_iterator entry(directory, error);
  // increment(error) instead of ++, which would throw: the caller gets the names so far and the
  // error.
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

bool PosixFileSystem::create_directory(const Path& path, std::error_code& error) {
  error.clear();
  return std::filesystem::create_directory(path, error);
}

std::error_code PosixFileSystem::rename(const Path& from, const Path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  return error;
}

std::error_code PosixFileSystem::link(const Path& from, const Path& to) {
  std::error_code error;
  std::filesystem::create_hard_link(from, to, error);
  return error;
}

std::error_code PosixFileSystem::remove(const Path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  return error;
}

void PosixFileSystem::sync_directory(const Path& directory) { data::sync_directory(directory); }

}  // namespace disttf::data
