#include "main/flags/data.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <stdexcept>
#include <string_view>

#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"
#include "storage/download/datasets.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/storage.h"

namespace disttf {
namespace {

constexpr const char* kData = "Data";

std::vector<std::string> dataset_names() {
  // "auto" is in no table: find_dataset() returns none for it.
  std::vector<std::string> names = {"auto"};
  for (const roles::DatasetRow& row : roles::datasets()) {
    names.emplace_back(row.name);
  }
  return names;
}

std::string dataset_help() {
  std::string downloaded;
  std::string built_in;
  for (const roles::DatasetRow& row : roles::datasets()) {
    std::string& names = row.is_built_in() ? built_in : downloaded;
    names += (names.empty() ? "`" : ", `") + std::string(row.name) + "`";
  }
  return "the data set: " + downloaded + "; " + built_in +
         ": built in; `auto`: " + std::string(roles::usual_dataset().word()) + ", and " +
         std::string(roles::built_in_dataset().name) + " if it is unavailable";
}

}  // namespace

void DataFlags::add_to(CLI::App& app, Takes takes) {
  FlagGroup add(app, kData);
  add.choice("--dataset", dataset, "NAME", dataset_names(), dataset_help());
  if (takes != Takes::kNamed) {
    add_own_data_flags(app, own, kData, /*has_path=*/true);
  }
  if (takes == Takes::kDownloadOnly) {
    add.toggle("--download_only", download_only, "fetch and extract the data set, then exit");
  }
  add.text("--data_dir", data_dir, "DIR",
           "directory of the data set and its conversions; or [a bucket's "
           "URL](stores.md#data), whose files are copied to `./input_data`");
  add.list("--data_url", data_url, "URL,...",
           "http or https folders to download from, tried in order, instead of the two built-in "
           "mirrors")
      ->check(comma_list_of(url()));
  add.text("--ca_file", ca_file, "FILE",
           "trusted certificate authorities, PEM [the system's file]");
  add.number("--download_timeout", download_timeout_s, "SECONDS", 1, kDaySeconds,
             "seconds for all downloads together");
}

roles::DataOptions DataFlags::options(const Environment& environment) const {
  roles::DataOptions data;
  data.own = own_data_options(own);
  data.dataset = roles::find_dataset(dataset);  // auto: none
  if (data.own && data.dataset != nullptr) {
    throw std::invalid_argument("--dataset: " + net::quoted(dataset) +
                                " is not allowed together with --data");
  }
  roles::check_place("--data_dir", data_dir);
  if (roles::is_store_url(std::string_view(data_dir))) {
    data.store = data_dir;  // its files are copied to the default directory
  } else {
    data.directory = data_dir;
  }
  roles::check_place("--data", own.path);
  data.mirrors = data_url;
  data.ca_file = ca_file;
  data.timeout = std::chrono::seconds(download_timeout_s);
  data.proxy = proxy_settings(environment);
  return data;
}

}  // namespace disttf
