// Which data set a task trains on and where it comes from: the directory, the mirrors, or code.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "net/http/http_proxy.h"
#include "roles/process/stop_signal.h"

namespace disttf::roles {

enum class DatasetChoice : std::uint8_t {
  kAuto,    // MNIST, and digits with a warning where it cannot be had
  kMnist,   // MNIST or nothing
  kDigits,  // the built-in set
};
[[nodiscard]] std::string_view dataset_choice_name(DatasetChoice choice) noexcept;
[[nodiscard]] std::optional<DatasetChoice> dataset_choice_from_name(std::string_view name) noexcept;

struct DataOptions {
  DatasetChoice dataset = DatasetChoice::kAuto;
  std::filesystem::path directory = "./input_data";
  std::vector<std::string> mirrors;  // --data_url; empty: the known ones
  std::string ca_file;               // empty: the system's
  net::ProxySettings proxy;
  std::chrono::seconds timeout{600};  // for all downloads together
};

// Opens the data set, downloading and extracting what is missing. Prints the tutorials' lines
// ("Successfully downloaded ...", "Extracting ...") as log lines. Throws Failure: kBadData with a
// sentence that names the file or each mirror's error; a signal's code when interrupted.
[[nodiscard]] data::Dataset open_dataset(const DataOptions& options, const StopSignal& stop);
// The built-in set, whatever options.dataset says.
[[nodiscard]] data::Dataset open_digits_dataset(const DataOptions& options);

// Only makes sure that MNIST's four files lie in the directory (`download`, --download_only).
void download_mnist(const DataOptions& options, const StopSignal& stop);

}  // namespace disttf::roles
