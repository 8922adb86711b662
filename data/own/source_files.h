// Finds the files that a user's path means and how each is read: the list of formats.
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
  // Called regularly with the number of bytes read before the first row; may throw.
  using Progress = std::function<void(std::uint64_t bytes)>;

  std::filesystem::path path;  // for error messages
  std::optional<Part> part;    // none: its rows are split among the parts
  std::uint64_t bytes = 0;
  std::string fingerprint;  // changes when the file changes
  bool has_images = false;
  // Throws UnusableData, and std::system_error if the file cannot be read.
  std::function<std::unique_ptr<RowSource>(const Progress&)> open;
};

// Returns the file itself, or the files of a folder's parts, training first. Opens none of them.
// Throws UnusableData if there is none, and std::system_error if the path cannot be read.
[[nodiscard]] std::vector<SourceFile> source_files(const OwnDataOptions& options,
                                                   std::size_t threads);

}  // namespace disttf::data
