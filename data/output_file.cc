#include "data/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "data/file.h"
#include "data/posix_file_system.h"

namespace disttf::data {
namespace {

using Path = std::filesystem::path;

[[noreturn]] void fail_output(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

struct OutputTarget {
  Path path;
  bool is_in_place = false;  // false: a new file may be renamed to it
};

Path output_folder_of(const Path& path) {
  return path.has_parent_path() ? path.parent_path() : Path(".");
}

// Entries of /proc look like links, but lead to unnamed objects or to files that are already open,
// which must not be replaced.
bool is_of_proc(const Path& folder) {
  std::error_code error;
  const Path real = std::filesystem::canonical(folder, error);
  return !error && real.native().starts_with("/proc/");
}

OutputTarget output_target_of(const Path& path) {
  struct stat status {};
  // A pipe, terminal or device cannot be replaced by a new file; folders fail later with their own
  // error.
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return {.path = path, .is_in_place = true};
  }
  constexpr int kMostLinks = 40;  // the kernel's limit
  Path at = path;
  for (int link = 0; link < kMostLinks; ++link) {
    // The links are followed here, because rename() would replace the link and not the file that it
    // leads to.
    if (::lstat(at.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) {
      return {.path = at, .is_in_place = false};
    }
    if (is_of_proc(output_folder_of(at))) {
      return {.path = path, .is_in_place = true};
    }
    std::error_code error;
    const Path target = std::filesystem::read_symlink(at, error);
    if (error) throw std::system_error(error, "cannot read " + at.string());
    at = output_folder_of(at) / target;  // an absolute target replaces the folder
  }
  fail_output(ELOOP, "cannot write " + path.string());
}

class OutputInPlace final : public NewFile {
 public:
  OutputInPlace(const Path& path, OutputReader reader) : path_(path) {
    // A blocking open would wait for a reader; a non-blocking one fails if there is none.
    file_ = FileDescriptor(
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (!file_.is_open()) {
      fail_output(errno, errno == ENXIO
                             ? "cannot write " + path.string() + ", which no process reads"
                             : "cannot write " + path.string());
    }
    // Blocking from here on: a slow reader delays the writer, which would otherwise fail.
    if (reader == OutputReader::kIsAwaited) {
      ::fcntl(file_.number(), F_SETFL, O_APPEND);
    }
  }
  void write(std::span<const std::uint8_t> bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file_.number(), bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) fail_output(errno, "cannot write " + path_.string());
      if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }
  // A pipe or a terminal has no disk.
  void sync() override {}
  // The name has existed all along. close() reports what a network file system did not accept.
  void take_name() override {
    if (::close(file_.release()) != 0 && errno != EINTR) {
      fail_output(errno, "cannot write " + path_.string());
    }
  }

 private:
  const Path path_;
  FileDescriptor file_;
};

}  // namespace

std::unique_ptr<NewFile> create_output(const Path& path, OutputReader reader) {
  const OutputTarget target = output_target_of(path);
  if (target.is_in_place) return std::make_unique<OutputInPlace>(target.path, reader);
  return std::make_unique<PosixNewFile>(target.path);
}

void write_output_file(const Path& path, std::string_view text, OutputReader reader) {
  const OutputTarget target = output_target_of(path);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  if (!target.is_in_place) {
    write_file_atomically(target.path, bytes);
    return;
  }
  OutputInPlace file(target.path, reader);
  file.write(bytes);
  file.take_name();
}

}  // namespace disttf::data
