#include "roles/download/dataset_source.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "net/transport/descriptor_limit.h"
#include "roles/download/download.h"
#include "roles/process/log.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

data::OpenOptions open_options() {
  data::OpenOptions options;
  options.replace_wrong = true;
  options.on_extract = [](const std::filesystem::path& gz) {
    log_info("Extracting " + gz.string());
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

// The .gz of every file that the directory cannot provide; those that are wrong are named.
std::vector<RemoteFile> missing_files(const data::FileSet& set,
                                      const std::filesystem::path& directory) {
  std::vector<RemoteFile> missing;
  for (const data::SetFile& file : set.files) {
    const data::FileCheck check = data::check_file(directory, file);
    if (check.state == data::FileState::kReady) {
      continue;
    }
    if (check.state == data::FileState::kWrong) {
      log_warning(check.sentence());
    }
    missing.push_back(RemoteFile{.name = file.gz_name(),
                                 .size_bytes = file.gz_bytes,
                                 .sha256 = std::string(file.gz_sha256)});
  }
  return missing;
}

void fetch_missing(const DatasetRow& dataset, const DataOptions& options,
                   const net::Interrupt& interrupt) {
  const std::vector<RemoteFile> missing = missing_files(dataset.files(), options.directory);
  if (missing.empty()) {
    return;
  }
  DownloadOptions download;
  download.directory = options.directory;
  download.mirrors = options.mirrors.empty() ? dataset.mirrors() : options.mirrors;
  download.proxy = options.proxy;
  download.ca_file = options.ca_file;
  download.deadline = net::Clock::now() + options.timeout;
  download.on_message = [](std::string_view sentence) { log_info(sentence); };
  download.on_result = [](std::string_view line) { log_info(line); };
  auto next_line = net::Clock::now() + std::chrono::seconds(1);
  download.on_progress = [&next_line](const DownloadProgress& progress) {
    if (const auto now = net::Clock::now(); now >= next_line) {
      next_line = now + std::chrono::seconds(1);
      log_progress(progress);
    }
  };
  fetch_files(missing, download, interrupt);
}

data::Dataset open_downloaded(const DatasetRow& dataset, const DataOptions& options,
                              const net::Interrupt& interrupt) {
  fetch_missing(dataset, options, interrupt);
  return data::open_file_set(options.directory, dataset.files(), open_options());
}

}  // namespace

data::Dataset open_built_in_dataset(const DatasetRow& dataset, const DataOptions& options) {
  return dataset.make(options.directory, open_options());
}

data::Dataset open_dataset(const DataOptions& options, const StopSignal& stop) {
  const DatasetRow& wanted = options.dataset != nullptr ? *options.dataset : usual_dataset();
  const DatasetRow& substitute = built_in_dataset();
  if (wanted.is_built_in()) {
    return open_built_in_dataset(wanted, options);
  }
  try {
    return open_downloaded(wanted, options, stop.interrupt());
  } catch (const std::system_error& error) {
    stop.throw_if_stopped();
    if (net::is_out_of_descriptors(error.code())) {  // the data set may well be there
      throw Failure(kError, std::string("cannot get the data set: ") + error.what() +
                                net::descriptor_hint(error.code()));
    }
    if (options.dataset != nullptr) {
      throw Failure(kBadData, error.what());
    }
    log_warning(std::string(wanted.word()) + " cannot be had, training on the built-in " +
                std::string(substitute.name) + " instead (--dataset " + std::string(wanted.name) +
                " makes this an error):\n" + error.what());
  }
  return open_built_in_dataset(substitute, options);
}

void download_dataset(const DataOptions& options, const StopSignal& stop) {
  DataOptions usual = options;
  usual.dataset = &usual_dataset();
  static_cast<void>(open_dataset(usual, stop));
}

}  // namespace disttf::roles
