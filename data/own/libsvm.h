// Tables as sparse text, as LIBSVM and SVMlight have them: a line is a label, and those numbers of
// the row that are not 0, each with the index of its column.
//
//   +1 3:0.5 7:1e-2   # what stands behind this sign is left out
//   -1 1:2 3:0.25
//
// Indices ascend, from 1, or from 0 (scikit-learn writes them so). Rows become dense: they have a
// column for every index up to the largest of all files of a set, which is why the files are read
// twice. Labels are numbers, and classes as class_name.h says. Lists of labels and query
// identifiers (qid:) are refused. Empty lines do not count.
//
// A file is read in pieces, by several threads; rows are made dense a few million numbers at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "data/own/row_source.h"

namespace disttf::data {

// An index above is refused: every row would have as many numbers.
inline constexpr std::uint32_t kMostLibsvmIndex = 65'536;

struct LibsvmOptions {
  bool label_is_number = false;
  std::size_t skipped_lines = 0;  // at the beginning of the file
  std::size_t threads = 1;        // that parse
};

// Which indices are used, of one file or of several.
struct LibsvmIndices {
  bool has_zero = false;
  std::uint32_t largest = 0;
  std::uint64_t rows = 0;

  // The first index that is a column.
  [[nodiscard]] std::uint32_t first() const noexcept { return has_zero ? 0 : 1; }
  [[nodiscard]] std::size_t columns() const noexcept { return largest + 1 - first(); }
  void add(const LibsvmIndices& other) noexcept;
};

// Reads the whole file; `on_progress` is called now and then with the bytes that are read, and may
// throw, which ends it. Throws UnusableData for what is wrong with a line and where there is none,
// and std::system_error where the file cannot be read.
[[nodiscard]] LibsvmIndices libsvm_indices(
    const std::filesystem::path& path, const LibsvmOptions& options,
    const std::function<void(std::uint64_t bytes)>& on_progress);

// Columns are called by their indices. Throws as libsvm_indices() does, and where an index is none
// of `indices`, or these have no column.
[[nodiscard]] std::unique_ptr<RowSource> open_libsvm(const std::filesystem::path& path,
                                                     const LibsvmOptions& options,
                                                     const LibsvmIndices& indices);

// The same in pieces of so many bytes that become blocks of so many numbers, for tests.
[[nodiscard]] std::unique_ptr<RowSource> open_libsvm(const std::filesystem::path& path,
                                                     const LibsvmOptions& options,
                                                     const LibsvmIndices& indices,
                                                     std::size_t piece_bytes,
                                                     std::size_t block_numbers);

}  // namespace disttf::data
