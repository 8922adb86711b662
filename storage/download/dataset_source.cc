#include "storage/download/dataset_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "data/checksums.h"
#include "data/file.h"
#include "data/posix_file_system.h"
#include "math/random.h"
#include "net/waiting/descriptor.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "storage/download/download.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/copy_files.h"
#include "text/shown_text.h"

namespace disttf::roles {
namespace {

data::OpenOptions open_options() {
  data::OpenOptions options;
  // This concerns extracted files only. A wrong .gz is reported and kept.
  options.replace_wrong = true;
  options.on_extract = [](const std::filesystem::path& packed) {
    log_info("Extracting " + packed.string());
  };
  options.on_warning = [](const std::string& sentence) { log_warning(sentence); };
  return options;
}

void log_progress(const DownloadProgress& progress) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  log_info(fmt::format("{}: {:.1f} of {:.1f} MiB, {:.1f} MiB/s", progress.file,
                       static_cast<double>(progress.bytes) / kMebibyte,
                       static_cast<double>(progress.total_bytes) / kMebibyte,
                       progress.bytes_per_second / kMebibyte));
}

// The directory in which the files of a set are, or will be.
std::filesystem::path directory_of(const DatasetRow& dataset, const DataOptions& options) {
  // Files of equal names in one directory would overwrite each other.
  if (!dataset.shares_file_names || data::provides(options.directory, dataset.files())) {
    return options.directory;
  }
  return options.directory / dataset.name;
}

// Whether a distribution's package provides the file.
bool is_in_package(const DatasetRow& dataset, const data::SetFile& file) {
  return !dataset.package_directory.empty() &&
         data::check_file(dataset.package_directory, file).state == data::FileState::kReady;
}

// What is downloaded to get `file`: its .gz, or the archive that contains it.
RemoteFile remote_file(const data::SetFile& file) {
  if (file.archive == nullptr) {
    return {
        .name = file.gz_name(), .size_bytes = file.gz_bytes, .sha256 = std::string(file.gz_sha256)};
  }
  return {.name = std::string(file.archive->name),
          .size_bytes = file.archive->size_bytes,
          .sha256 = std::string(file.archive->sha256)};
}

// Returns what must be downloaded because neither the directory nor a package has it. Files with
// wrong contents are logged by name.
std::vector<RemoteFile> missing_files(const DatasetRow& dataset,
                                      const std::filesystem::path& directory) {
  std::vector<RemoteFile> missing;
  std::string said;  // every file of a damaged archive gives the same message: logged once
  const data::FileSet& set = dataset.files();
  const std::vector<data::FileCheck> checks = data::check_files(directory, set);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const data::SetFile& file = set.files[i];
    const data::FileCheck& check = checks[i];
    if (check.state == data::FileState::kReady) {
      continue;
    }
    if (check.state == data::FileState::kWrong && check.sentence() != said) {
      said = check.sentence();
      log_warning(said);
    }
    // After the directory: a file there that is wrong is reported even if the package has a right
    // one.
    if (is_in_package(dataset, file)) {
      continue;
    }
    RemoteFile remote = remote_file(file);
    // Several files may come from one archive.
    if (std::ranges::find(missing, remote.name, &RemoteFile::name) == missing.end()) {
      missing.push_back(std::move(remote));
    }
  }
  return missing;
}

void fetch_missing(const DatasetRow& dataset, const DataOptions& options,
                   const std::filesystem::path& directory, const net::Interrupt& interrupt) {
  std::vector<RemoteFile> missing = missing_files(dataset, directory);
  if (!missing.empty() && !options.store.empty()) {
    fetch_from_store(missing, options.store, directory);
    // Checks again: the store may have had only some of them, or wrong ones.
    missing = missing_files(dataset, directory);
  }
  if (missing.empty()) {
    return;
  }
  DownloadOptions download;
  download.directory = directory;
  download.mirrors = options.mirrors.empty() ? dataset.mirrors() : options.mirrors;
  download.proxy = options.proxy;
  download.ca_file = options.ca_file;
  // One deadline for all files and mirrors, so that a start does not take longer, whatever fails.
  download.deadline = net::Clock::now() + options.timeout;
  download.on_message = [](std::string_view sentence) { log_info(sentence); };
  download.on_result = [](std::string_view line) { log_info(line); };
  // No line for a download that takes less than a second.
  auto next_line = net::Clock::now() + std::chrono::seconds(1);
  download.on_progress = [&next_line](const DownloadProgress& progress) {
    if (const auto now = net::Clock::now(); now >= next_line) {
      next_line = now + std::chrono::seconds(1);
      log_progress(progress);
    }
  };
  fetch_files(missing, download, interrupt);
}

// The error message: what is missing, and what to do about it.
std::string not_to_be_had(const DatasetRow& dataset, const DataOptions& options) {
  const std::filesystem::path directory = directory_of(dataset, options);
  const std::vector<data::FileCheck> checks = data::check_files(directory, dataset.files());
  std::vector<std::string> names;
  for (std::size_t each = 0; each < checks.size(); ++each) {
    const std::string name = remote_file(dataset.files().files[each]).name;
    if (checks[each].state != data::FileState::kReady &&
        std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  if (names.empty()) {
    return fmt::format("--dataset {}", dataset.name);
  }
  return fmt::format(
      "--dataset {}: {} {} not in {} and cannot be downloaded; copy {} there, name another "
      "directory with --data_dir or another mirror with --data_url, or train on the built-in {} "
      "with "
      "--dataset {}",
      dataset.name, fmt::join(names, ", "), names.size() == 1 ? "is" : "are",
      net::quoted(directory.string()), names.size() == 1 ? "it" : "them", built_in_dataset().name,
      built_in_dataset().name);
}

data::Dataset open_downloaded(const DatasetRow& dataset, const DataOptions& options,
                              const net::Interrupt& interrupt) {
  const std::filesystem::path directory = directory_of(dataset, options);
  fetch_missing(dataset, options, directory, interrupt);
  data::OpenOptions open = open_options();
  if (!dataset.package_directory.empty()) {
    open.gz_directory = dataset.package_directory;
    // For the extracted files. A failure is reported when a file is written.
    std::error_code ignored;
    std::filesystem::create_directories(directory, ignored);
  }
  return data::open_file_set(directory, dataset.files(), open);
}

// Logs the progress of a conversion, once a second.
class ConversionLog {
 public:
  explicit ConversionLog(const StopSignal& stop) : stop_(stop) {}
  void progress(std::uint64_t bytes, std::uint64_t all_bytes) {
    stop_.throw_if_stopped();
    const auto now = net::Clock::now();
    if (now < next_line_) {
      return;
    }
    next_line_ = now + std::chrono::seconds(1);
    if (all_bytes == 0) {
      log_info("another task is converting the data; waiting for it");
      return;
    }
    constexpr double kMebibyte = 1024.0 * 1024.0;
    const double seconds = std::chrono::duration<double>(now - began_).count();
    log_info(fmt::format("Converting: {:.1f} of {:.1f} MiB, {:.1f} MiB/s",
                         static_cast<double>(bytes) / kMebibyte,
                         static_cast<double>(all_bytes) / kMebibyte,
                         static_cast<double>(bytes) / kMebibyte / seconds));
  }

 private:
  const StopSignal& stop_;
  net::Clock::time_point began_ = net::Clock::now();
  net::Clock::time_point next_line_ = began_ + std::chrono::seconds(1);
};

}  // namespace

data::OpenedOwnData open_own_dataset(const DataOptions& options, const StopSignal& stop) {
  ConversionLog log(stop);
  data::OwnDataHooks hooks;
  hooks.cache_directory = options.directory;
  hooks.purpose = static_cast<std::uint32_t>(math::Purpose::kHoldOut);
  hooks.random_bits = &math::random_bits;
  // The conversion precedes training, so it may use all processors.
  hooks.threads = processors();
  hooks.on_progress = [&log](std::uint64_t bytes, std::uint64_t all) { log.progress(bytes, all); };
  // A conversion may take minutes: a signal ends it between two blocks.
  hooks.on_block = [&stop] { stop.throw_if_stopped(); };
  hooks.on_message = [](const std::string& sentence) { log_info(sentence); };
  try {
    return data::open_own_data(brought_here(*options.own, options.directory), hooks);
  } catch (const data::UnusableData& error) {
    throw Failure(kBadData, error.what());
  } catch (const std::system_error& error) {
    throw Failure(kBadData, shown_text(error.what()));  // the message contains file names
  }
}

data::Dataset open_built_in_dataset(const DatasetRow& dataset, const DataOptions& options) {
  return dataset.make(options.directory, open_options());
}

data::Dataset open_dataset(const DataOptions& options, const StopSignal& stop) {
  if (options.own) {
    return open_own_dataset(options, stop).dataset;
  }
  const DatasetRow& wanted = options.dataset != nullptr ? *options.dataset : usual_dataset();
  const DatasetRow& substitute = built_in_dataset();
  if (wanted.is_built_in()) {
    return open_built_in_dataset(wanted, options);
  }
  try {
    return open_downloaded(wanted, options, stop.interrupt());
  } catch (const std::system_error& error) {
    // An interruption looks like a failed download.
    stop.throw_if_stopped();
    if (net::is_out_of_descriptors(error.code())) {  // says nothing about the data set
      throw Failure(kError, std::string("cannot get the data set: ") + error.what() +
                                net::descriptor_hint(error.code()));
    }
    // An explicitly named data set must not be replaced silently by another one.
    if (options.dataset != nullptr) {
      // The advice fits only if files are missing, not if they cannot be read or written.
      const bool is_missing = dynamic_cast<const DownloadError*>(&error) != nullptr;
      throw Failure(kBadData, (is_missing ? not_to_be_had(wanted, options) + ": " : "") +
                                  std::string(error.what()));
    }
    log_warning(std::string(wanted.word()) + " cannot be had, training on the built-in " +
                std::string(substitute.name) + " instead (--dataset " + std::string(wanted.name) +
                " makes this an error):\n  " + error.what());
  }
  return open_built_in_dataset(substitute, options);
}

void download_dataset(const DataOptions& options, const StopSignal& stop) {
  DataOptions wanted = options;
  if (wanted.dataset == nullptr || wanted.dataset->is_built_in()) {
    // Named explicitly, so that open_dataset() does not replace it by the built-in one.
    wanted.dataset = &usual_dataset();
  }
  static_cast<void>(open_dataset(wanted, stop));
}

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

// Uses a descriptor: the sandbox forbids setting times by path (run/process/confinement.h).
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
