// Which data set a task trains on and where it comes from: the directory, the mirrors, or code.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/own/own_data.h"
#include "net/http/http_proxy.h"
#include "roles/download/datasets.h"
#include "roles/process/stop_signal.h"

namespace disttf::roles {

struct DataOptions {
  // A user's own, which then is the data set, converted in the directory.
  std::optional<data::OwnDataOptions> own;
  // Null: the usual one, and the built-in one with a warning where that cannot be had.
  const DatasetRow* dataset = nullptr;
  // A set whose files have the usual one's names is in the directory of its own name in it, unless
  // it lies in this one.
  std::filesystem::path directory = "./input_data";
  std::string store{};  // a store's URL where files of a known set may lie; empty: none
  std::vector<std::string> mirrors;  // --data_url; empty: the known ones
  std::string ca_file;               // empty: the system's
  net::ProxySettings proxy;
  std::chrono::seconds timeout{600};  // for all downloads together
};

// Opens the data set, downloading and extracting what neither the directory nor the package of a
// distribution has. Prints the tutorials' lines
// ("Successfully downloaded ...", "Extracting ...") as log lines. Throws Failure: kBadData with a
// sentence that names the file or each mirror's error; a signal's code when interrupted.
[[nodiscard]] data::Dataset open_dataset(const DataOptions& options, const StopSignal& stop);
// A user's own data, converted where that has not been done yet. REQUIRES: options.own. Throws as
// open_dataset() does.
[[nodiscard]] data::OpenedOwnData open_own_dataset(const DataOptions& options,
                                                   const StopSignal& stop);
// That set, whatever options.dataset says. REQUIRES: it is built in.
[[nodiscard]] data::Dataset open_built_in_dataset(const DatasetRow& dataset,
                                                  const DataOptions& options);

// Only makes sure that the data set's files lie in the directory (`download`, --download_only): the
// usual one's where options.dataset is none or built in.
void download_dataset(const DataOptions& options, const StopSignal& stop);

}  // namespace disttf::roles
