// The registry of the data sets: what --dataset names, what a driver orders and what a chief
// publishes. To add one: a file in data/ that pins its contents, as data/mnist.cc does, and a row
// in datasets.cc.
//
// Constant data and pure functions, but for make(); callable from any thread.
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
  // In an order to train (net/wire/run_order.h): stays the same for ever; from 2 on.
  std::uint8_t number = 0;
  // Its files. files().name is the first word of the result line: "MNIST".
  const data::FileSet& (*files)() noexcept = nullptr;
  // Its files have the names of the usual set's: unless they lie in the directory already, theirs
  // is the one of this set's name in it.
  bool shares_file_names = false;
  // Where the package of a distribution leaves its .gz files. Empty: there is none.
  std::string_view package_directory{};
  // Where to download its .gz files or its archive from, in the order to try. Null: it is built in.
  std::vector<std::string> (*mirrors)() = nullptr;
  // Built in: reads it from the directory, or makes it and leaves it there (data/digits.h).
  data::Dataset (*make)(const std::filesystem::path& directory,
                        const data::OpenOptions& options) = nullptr;

  [[nodiscard]] bool is_built_in() const noexcept { return make != nullptr; }
  [[nodiscard]] std::string_view word() const noexcept { return files().name; }
};

// The first is what `auto` stands for, the first one that is built in what takes its place where it
// cannot be had.
[[nodiscard]] std::span<const DatasetRow> datasets() noexcept;
[[nodiscard]] const DatasetRow& usual_dataset() noexcept;
[[nodiscard]] const DatasetRow& built_in_dataset() noexcept;

// Null: there is none of that name, word or number.
[[nodiscard]] const DatasetRow* find_dataset(std::string_view name) noexcept;
[[nodiscard]] const DatasetRow* find_dataset_of_word(std::string_view word) noexcept;
[[nodiscard]] const DatasetRow* find_dataset_of_number(std::uint8_t number) noexcept;

}  // namespace disttf::roles
