// Which files a user's path means, and how each is read: the list of the formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/own/hold_out.h"
#include "data/own/own_data.h"
#include "data/own/row_source.h"

namespace disttf::data {

struct SourceFile {
  // Called now and then with how many bytes have been read before there is a first row; may throw.
  using Progress = std::function<void(std::uint64_t bytes)>;

  std::filesystem::path path;  // for sentences
  std::optional<Part> part;    // none: its rows are shared out
  std::uint64_t bytes = 0;
  std::string stamp;  // another one when the file has changed
  bool has_images = false;
  // Throws UnusableData, and std::system_error where it cannot be read.
  std::function<std::unique_ptr<RowSource>(const Progress&)> open;
};

// Of a file, itself; of a folder, those of its parts, to train on first. Opens none of them. Throws
// UnusableData where there is none, and std::system_error where it cannot be read.
[[nodiscard]] std::vector<SourceFile> source_files(const OwnDataOptions& options,
                                                   std::size_t threads);

}  // namespace disttf::data
