// Opens the data set of a task: from the directory, a store, a mirror, or generated.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/own/own_data.h"
#include "net/http/http_proxy.h"
#include "run/process/stop_signal.h"
#include "storage/download/datasets.h"
#include "storage/download/download.h"

namespace disttf::roles {

struct DataOptions {
  // The user's own data, which is converted in the directory; then `dataset` is not used.
  std::optional<data::OwnDataOptions> own;
  // Null: the default set; the built-in one with a warning where the default is unavailable.
  const DatasetRow* dataset = nullptr;
  // A set whose file names equal the default set's lies in a subdirectory of its own name, unless
  // this directory holds it already.
  std::filesystem::path directory = "./input_data";
  std::string store{};               // URL of a store that may hold the files; empty: none
  std::vector<std::string> mirrors;  // --data_url; empty: the default ones
  std::string ca_file;               // empty: the system's
  net::ProxySettings proxy;
  std::chrono::seconds timeout{600};  // for all downloads together
};

// Opens the data set. Downloads and extracts what neither the directory nor a distribution's
// package has. Logs the tutorials' lines ("Successfully downloaded ...", "Extracting ..."). Throws
// Failure: kBadData with a sentence that names the file or the error of each mirror; a signal's
// code when interrupted.
[[nodiscard]] data::Dataset open_dataset(const DataOptions& options, const StopSignal& stop);
// Opens the user's own data; converts it first where needed. REQUIRES: options.own. Throws as
// open_dataset() does.
[[nodiscard]] data::OpenedOwnData open_own_dataset(const DataOptions& options,
                                                   const StopSignal& stop);
// Opens `dataset`; ignores options.dataset. REQUIRES: it is built in.
[[nodiscard]] data::Dataset open_built_in_dataset(const DatasetRow& dataset,
                                                  const DataOptions& options);

// Downloads the data set's files into the directory without opening them (`download`,
// --download_only). Takes the default set where options.dataset is null or built in.
void download_dataset(const DataOptions& options, const StopSignal& stop);

// Copies data from a store to this machine: training reads it many times, and as files.

// Returns the options with the path of a local copy in `directory` where `own` names a store's URL.
// Copies what is missing or has changed. Throws Failure(kBadData) if the copy fails.
[[nodiscard]] data::OwnDataOptions brought_here(const data::OwnDataOptions& own,
                                                const std::filesystem::path& directory);

// Copies those of the files that lie in `source`, a store's URL. Does not verify their contents.
// Throws Failure(kBadData).
void fetch_from_store(std::span<const RemoteFile> files, const std::string& source,
                      const std::filesystem::path& directory);

}  // namespace disttf::roles
