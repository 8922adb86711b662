// The registry of data sets: the values of --dataset, the numbers in a run order and what a chief
// publishes. To add one: a file in data/ that pins its contents, as data/mnist.cc does, and a row
// in datasets.cc.
//
// Constant data and pure functions, except make(); callable from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/file_set.h"

namespace disttf::roles {

struct DatasetRow {
  std::string_view name;  // the value of --dataset: "mnist"
  // Its number in a run order (net/wire/server_requests.h); never changes; from 2.
  std::uint8_t number = 0;
  // Its files. files().name is the first word of the result line: "MNIST".
  const data::FileSet& (*files)() noexcept = nullptr;
  // Its files have the same names as the default set's. They go to a subdirectory named after this
  // set, unless the directory itself holds them already.
  bool shares_file_names = false;
  // Where a distribution's package installs its .gz files. Empty: no package.
  std::string_view package_directory{};
  // Where to download its .gz files or its archive, in the order to try. Null: it is built in.
  std::vector<std::string> (*mirrors)() = nullptr;
  // For a built-in set: reads it from the directory, or generates it there (data/digits.h).
  data::Dataset (*make)(const std::filesystem::path& directory,
                        const data::OpenOptions& options) = nullptr;

  [[nodiscard]] bool is_built_in() const noexcept { return make != nullptr; }
  [[nodiscard]] std::string_view word() const noexcept { return files().name; }
};

// The first row is the default set (`auto`). The first built-in one is the substitute where the
// default is unavailable.
[[nodiscard]] std::span<const DatasetRow> datasets() noexcept;
[[nodiscard]] const DatasetRow& usual_dataset() noexcept;
[[nodiscard]] const DatasetRow& built_in_dataset() noexcept;

// Null: no set has that name, word or number.
[[nodiscard]] const DatasetRow* find_dataset(std::string_view name) noexcept;
[[nodiscard]] const DatasetRow* find_dataset_of_word(std::string_view word) noexcept;
[[nodiscard]] const DatasetRow* find_dataset_of_number(std::uint8_t number) noexcept;

}  // namespace disttf::roles
