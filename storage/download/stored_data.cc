#include "storage/download/stored_data.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "data/file.h"
#include "data/posix_file_system.h"
#include "data/sha256.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/copy_files.h"

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;

constexpr std::size_t kFilesAtOnce = 4;
// Hexadecimal digits of a SHA-256; enough to tell URLs apart.
constexpr std::size_t kUrlDigits = 16;

// Each URL gets its own directory: two may end in the same name.
Path place_of_copy(const std::string& url, const Path& directory) {
  const std::string hash = data::sha256_hex(std::as_bytes(std::span(url)));
  return directory / "stored" / hash.substr(0, kUrlDigits) / Path(url).filename();
}

// Uses a descriptor: the sandbox forbids setting times by path (run/process/call_filter.h).
void set_date(const FileToCopy& file) {
  const auto since_epoch = std::chrono::file_clock::to_sys(file.modified).time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch - seconds);
  const timespec modified{.tv_sec = seconds.count(), .tv_nsec = rest.count()};
  const std::array times = {timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, modified};
  const data::FileDescriptor opened(::open(file.to.c_str(), O_WRONLY | O_CLOEXEC));
  if (!opened.is_open() || ::futimens(opened.number(), times.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot date " + file.to.string());
  }
}

// Whether the copy is current: a copy has the modification time of its source.
bool is_there(const FileToCopy& file) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(file.to, error);
  return !error && time == file.modified &&
         std::filesystem::file_size(file.to, error) == file.size_bytes && !error;
}

// Removes files that the store no longer has. Temporary files may be another task's.
void remove_strays(const Path& directory, const std::vector<FileToCopy>& files) {
  std::set<Path> wanted;
  for (const FileToCopy& file : files) wanted.insert(file.to);
  std::vector<Path> strays;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const bool is_temporary =
        entry.path().filename().string().find(data::kTemporaryMark) != std::string::npos;
    if (entry.is_regular_file() && !is_temporary && !wanted.contains(entry.path())) {
      strays.push_back(entry.path());
    }
  }
  // After the iteration, which removals could disturb. A file that another task has removed is no
  // error.
  for (const Path& stray : strays) std::filesystem::remove(stray);
}

void bring(const std::string& url, const Path& to) {
  Storage storage;
  std::vector<FileToCopy> files;
  const bool is_directory = collect_files(storage, url, to, files);
  if (!is_directory) files.push_back(file_to_copy(storage, url, to));
  std::vector<FileToCopy> missing = files;
  std::erase_if(missing, is_there);
  if (!missing.empty()) {
    log_info("Copying " + std::to_string(missing.size()) + " of " + std::to_string(files.size()) +
             " files from " + url + " to " + to.string());
    copy_files(missing, kFilesAtOnce);
    for (const FileToCopy& file : missing) {
      // Last: the date marks the copy as complete. A task that dies before it copies the file
      // again.
      set_date(file);
    }
  }
  // A reader takes every file of the directory, so one that the store has dropped must go.
  if (is_directory) remove_strays(to, files);
}

}  // namespace

data::OwnDataOptions brought_here(const data::OwnDataOptions& own, const Path& directory) {
  if (!is_store_url(own.path)) return own;
  const std::string url = own.path.string();
  data::OwnDataOptions here = own;
  here.path = place_of_copy(url, directory);
  try {
    bring(url, here.path);
  } catch (const std::system_error& error) {
    throw Failure(kBadData, error.what());
  }
  return here;
}

void fetch_from_store(std::span<const RemoteFile> files, const std::string& source,
                      const Path& directory) {
  Storage storage;
  std::vector<FileToCopy> there;
  try {
    for (const RemoteFile& file : files) {
      const Path from = Path(source) / file.name;
      std::error_code error;
      // Other errors come up again in file_to_copy(), which reports them.
      static_cast<void>(storage.size_of(from, error));
      if (error == std::errc::no_such_file_or_directory) {
        log_info(file.name + " is not in " + source);
        continue;
      }
      there.push_back(file_to_copy(storage, from, directory / file.name));
    }
    if (there.empty()) return;
    log_info("Copying " + std::to_string(there.size()) + " files from " + source + " to " +
             directory.string());
    copy_files(std::move(there), kFilesAtOnce);
  } catch (const std::system_error& error) {
    throw Failure(kBadData, error.what());
  }
}

}  // namespace disttf::roles
