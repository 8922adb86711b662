// A user's own data: files of a supported format, converted once into a folder that a step reads
// directly (cache.h).
//
//  TABLE.csv, .tsv, .txt      one table (csv.h): rows are drawn from it for validation and test
//   TABLE.libsvm, .svm, .svmlight   the same as sparse text (libsvm.h)
//   ARRAYS.npz                 NumPy arrays (arrays.h): rows of numbers, or images
//   a folder                   train.csv, test.csv and optionally validation.csv, or the other
//                              endings. Missing parts are drawn from train's rows
//   a folder of .npy files     the same as .npz
//   a folder of class folders  images, PNG and JPEG (image_folder.h)
//   a folder of IDX files      images, read directly (idx_folder.h)
//
// Conversion takes bounded memory for any file size. If several tasks of one machine need the same
// conversion, one does it and the others wait.
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

// How to read the data. Unset options are detected (csv.h).
struct OwnDataOptions {
  std::filesystem::path path;
  std::string label_column{};
  bool label_is_number = false;  // labels are numbers, not classes
  std::vector<std::string> ignored_columns{};
  std::size_t skipped_lines = 0;
  HeldOut held_out{};
};

struct OwnDataHooks {
  std::filesystem::path cache_directory;  // the parent of the converted folders; created if absent
  std::uint32_t purpose = 0;              // math::Purpose::kHoldOut
  RandomBits random_bits = nullptr;
  std::size_t threads = 1;
  // Called regularly while a file is converted, and with zeros while another task converts it. May
  // throw, which ends the wait or the conversion.
  std::function<void(std::uint64_t bytes, std::uint64_t all_bytes)> on_progress{};
  // Called repeatedly while files that need no conversion are read. May throw, which ends the read.
  std::function<void()> on_block{};
  std::function<void(const std::string& sentence)> on_message{};
};

struct OwnData {
  std::filesystem::path directory;  // of the converted data
  CacheIndex index;
};

struct OpenedOwnData {
  std::optional<OwnData> converted;  // none for IDX files
  Dataset dataset;                   // including its findings
};

// Returns the first word of the result line: "iris" for data/iris.csv.
[[nodiscard]] std::string own_data_name(const std::filesystem::path& path);

// Converts the data unless that is already done. Throws UnusableData, and std::system_error if
// something cannot be read or written, both with a sentence. REQUIRES: the path is not a folder of
// IDX files, which need no conversion.
[[nodiscard]] OwnData convert_own_data(const OwnDataOptions& options, const OwnDataHooks& hooks);

// Converts the data and opens it, or reads IDX files directly.
[[nodiscard]] OpenedOwnData open_own_data(const OwnDataOptions& options, const OwnDataHooks& hooks);

}  // namespace disttf::data
