// A user's data as a step reads it: arrays in files that are mapped into memory. A folder:
//
//   train.examples       [rows, columns] float32, little-endian; or, of images, [rows, height,
//                        width, channels] bytes
//   train.labels         [rows] bytes: places in the list of classes; or, where labels are numbers,
//                        float32
//   validation.examples, validation.labels, test.examples, test.labels
//   index.json           what they are, written last; with its SHA-256 of each
//
// All of it is made under another name and then renamed, so a folder that is there is whole. It is
// made again where the version, the source (file_stamp.h) or how that is to be read has changed.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/own/column_summary.h"
#include "data/own/hold_out.h"

namespace disttf::data {

struct CachedPart {
  std::uint64_t rows = 0;
  std::string examples_sha256;
  std::string labels_sha256;
  std::vector<std::uint64_t> rows_of_class;
};

// What index.json says.
struct CacheIndex {
  std::string name;    // Dataset::name
  std::string source;  // SHA-256 of which files it was made of, and how they were read
  std::string label_column;
  std::vector<std::string> classes;        // none: labels are numbers
  std::optional<ColumnSummary> target;     // then what they are like
  std::vector<ColumnSummary> columns;      // none of images
  std::optional<ImageShape> images;        // of each
  std::array<CachedPart, kParts> parts{};  // by Part
  std::string checksum;                    // SHA-256 over all that is above, but for the source
  // Sentences on how the files were read that findings_of() repeats; no part of the checksum, as
  // they have paths.
  std::vector<std::string> warnings{};
};

// Makes such a folder. What is not finished is removed with it. Throws std::system_error with a
// sentence that names the path.
class CacheWriter {
 public:
  // Beside `directory`, which is what finish() makes of it.
  explicit CacheWriter(std::filesystem::path directory);
  ~CacheWriter();
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;

  // Rows of a part, in their order; `labels` are places in a list that may not be in order yet.
  void append(Part part, std::span<const float> numbers, std::span<const std::uint8_t> labels);
  void append(Part part, std::span<const float> numbers, std::span<const float> targets);
  void append(Part part, std::span<const std::uint8_t> pixels,
              std::span<const std::uint8_t> labels);
  // Label L becomes final_places[L], where there are classes; `index` gets the rows and sums of the
  // parts, and the checksum. A folder that is there already gives way.
  void finish(CacheIndex& index, std::span<const std::uint8_t> final_places);

 private:
  struct PartFiles;
  std::filesystem::path directory_;
  std::filesystem::path temporary_;  // empty: it has its name
  std::array<std::unique_ptr<PartFiles>, kParts> parts_;
};

// None: there is no such folder, or one of another version, or somebody has changed its index.
[[nodiscard]] std::optional<CacheIndex> read_cache_index(const std::filesystem::path& directory);

// The data set, mapped; `index` is the folder's. Compares the checksums; `on_block` is called again
// and again meanwhile, and may throw. Throws UnusableData where they differ, and std::system_error
// where it cannot be read.
[[nodiscard]] Dataset open_cache(const std::filesystem::path& directory, const CacheIndex& index,
                                 const std::function<void()>& on_block);

}  // namespace disttf::data
