// Tables as sparse text, in the format of LIBSVM and SVMlight: a line has a label and the nonzero
// numbers of the row, each with its column index.
//
//  +1 3:0.5 7:1e-2   # text after this sign is ignored
//   -1 1:2 3:0.25
//
// Indices ascend from 1, or from 0 (as scikit-learn writes them). Rows become dense: they have a
// column for every index up to the largest one in all files of a set, which is why the files are
// read twice. Labels are numbers, and classes follow class_name.h. Lists of labels and query
// identifiers (qid:) are refused. Empty lines are ignored.
//
// Several threads read a file in pieces; rows become dense a few million numbers at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "data/own/row_source.h"

namespace disttf::data {

// The largest accepted index; every row has that many numbers.
inline constexpr std::uint32_t kMostLibsvmIndex = 65'536;

struct LibsvmOptions {
  bool label_is_number = false;
  std::size_t skipped_lines = 0;  // at the beginning of the file
  std::size_t threads = 1;        // number of parsing threads
};

// The indices in use, of one file or of several.
struct LibsvmIndices {
  bool has_zero = false;
  std::uint32_t largest = 0;
  std::uint64_t rows = 0;

  // The first index that is a column.
  [[nodiscard]] std::uint32_t first() const noexcept { return has_zero ? 0 : 1; }
  [[nodiscard]] std::size_t columns() const noexcept { return largest + 1 - first(); }
  void add(const LibsvmIndices& other) noexcept;
};

// Reads the whole file and returns its indices. Calls `on_progress` regularly with the number of
// bytes read; it may throw, which ends the read. Throws UnusableData for a malformed line or a file
// without rows, and std::system_error if the file cannot be read.
[[nodiscard]] LibsvmIndices libsvm_indices(
    const std::filesystem::path& path, const LibsvmOptions& options,
    const std::function<void(std::uint64_t bytes)>& on_progress);

// Opens the file; column names are the indices. Throws as libsvm_indices() does, and if an index is
// not among `indices` or these have no column.
[[nodiscard]] std::unique_ptr<RowSource> open_libsvm(const std::filesystem::path& path,
                                                     const LibsvmOptions& options,
                                                     const LibsvmIndices& indices);

// The same, in pieces of `piece_bytes` and blocks of `block_numbers`, for tests.
[[nodiscard]] std::unique_ptr<RowSource> open_libsvm(const std::filesystem::path& path,
                                                     const LibsvmOptions& options,
                                                     const LibsvmIndices& indices,
                                                     std::size_t piece_bytes,
                                                     std::size_t block_numbers);

}  // namespace disttf::data
