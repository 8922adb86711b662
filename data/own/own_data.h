// A user's own data: files of a format that is known here, converted once into a folder that a step
// reads as it reads MNIST (cache.h).
//
//   TABLE.csv, .tsv, .txt      one file (csv.h): rows are drawn from it for validation and test
//   TABLE.libsvm, .svm, .svmlight   the same of sparse text (libsvm.h)
//   ARRAYS.npz                 NumPy's (arrays.h): rows of numbers, or images
//   a folder                   train.csv, test.csv and, if there is one, validation.csv; or with
//                              the other endings. What is not there is drawn from train's rows
//   a folder of .npy files     the same as .npz
//   a folder of class folders  images, PNG and JPEG (image_folder.h)
//   a folder of IDX files      images, which are read as they are (idx_folder.h)
//
// Conversion takes bounded memory, whatever the file's size. Several tasks of one machine may want
// the same: one converts, the others wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/own/cache.h"
#include "data/own/hold_out.h"
#include "data/own/row_source.h"
#include "data/sampler.h"

namespace disttf::data {

// How it is to be read. What is not said is found out (csv.h).
struct OwnDataOptions {
  std::filesystem::path path;
  std::string label_column{};
  bool label_is_number = false;  // not one of some classes
  std::vector<std::string> ignored_columns{};
  std::size_t skipped_lines = 0;
  HeldOut held_out{};
};

struct OwnDataHooks {
  std::filesystem::path cache_directory;  // that the folders lie in; made where it is not there
  std::uint32_t purpose = 0;              // math::Purpose::kHoldOut
  RandomBits random_bits = nullptr;
  std::size_t threads = 1;
  // Now and then while a file is converted, or another task does that: then with zeros. May throw,
  // which ends it.
  std::function<void(std::uint64_t bytes, std::uint64_t all_bytes)> on_progress{};
  // Again and again while files are read that need no conversion. May throw, which ends it.
  std::function<void()> on_block{};
  std::function<void(const std::string& sentence)> on_message{};
};

struct OwnData {
  std::filesystem::path directory;  // of the converted form
  CacheIndex index;
};

struct OpenedOwnData {
  std::optional<OwnData> converted;  // none of IDX files
  Dataset dataset;                   // with its findings
};

// The first word of the result line: "iris" of data/iris.csv.
[[nodiscard]] std::string own_data_name(const std::filesystem::path& path);

// Converts it, unless that has been done. Throws UnusableData, and std::system_error where
// something cannot be read or written, both with a sentence. REQUIRES: it is no folder of IDX
// files, which are read as they are.
[[nodiscard]] OwnData convert_own_data(const OwnDataOptions& options, const OwnDataHooks& hooks);

// The same, and opens it; or reads IDX files.
[[nodiscard]] OpenedOwnData open_own_data(const OwnDataOptions& options, const OwnDataHooks& hooks);

}  // namespace disttf::data
