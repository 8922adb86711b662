// A user's data in the form that a step reads: arrays in memory-mapped files. A folder contains:
//
//  train.examples       [rows, columns] float32, little-endian; or, for images, [rows, height,
//                        width, channels] bytes
//   train.labels         [rows] bytes: indices in the list of classes; or, for numeric labels,
//                        float32
//   validation.examples, validation.labels, test.examples, test.labels
//   index.json           describes them, with the SHA-256 of each; written last
//
// The folder is written under another name and then renamed, so an existing folder is complete. It
// is written again if the version, the source (FileFingerprint) or the way of reading the source
// changes.
#pragma once

#include <sys/stat.h>

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

// The contents of index.json.
struct CacheIndex {
  std::string name;    // Dataset::name
  std::string source;  // SHA-256 over the identity of the source files and the read options
  std::string label_column;
  std::vector<std::string> classes;        // empty: labels are numbers
  std::optional<ColumnSummary> target;     // the summary of numeric labels
  std::vector<ColumnSummary> columns;      // empty for images
  std::optional<ImageShape> images;        // the shape of every image
  std::array<CachedPart, kParts> parts{};  // by Part
  std::string checksum;                    // SHA-256 over all of the above except the source
  // Sentences about how the files were read, which findings_of() repeats. They contain paths and
  // are therefore not part of the checksum.
  std::vector<std::string> warnings{};
};

// Writes such a folder. The destructor removes an unfinished one. Throws std::system_error with a
// sentence that names the path.
class CacheWriter {
 public:
  // Writes beside `directory`; finish() renames the result to it.
  explicit CacheWriter(std::filesystem::path directory);
  ~CacheWriter();
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;

  // Appends rows of a part, in order; `labels` are indices in a list of classes that need not be
  // sorted yet.
  void append(Part part, std::span<const float> numbers, std::span<const std::uint8_t> labels);
  void append(Part part, std::span<const float> numbers, std::span<const float> targets);
  void append(Part part, std::span<const std::uint8_t> pixels,
              std::span<const std::uint8_t> labels);
  // Replaces label L by final_places[L] if there are classes, and fills the parts' rows and sums
  // and the checksum into `index`. Replaces an existing folder.
  void finish(CacheIndex& index, std::span<const std::uint8_t> final_places);

 private:
  struct PartFiles;
  std::filesystem::path directory_;
  std::filesystem::path temporary_;  // empty: already renamed
  std::array<std::unique_ptr<PartFiles>, kParts> parts_;
};

// Returns none if the folder is absent, has another version, or has a modified index.
[[nodiscard]] std::optional<CacheIndex> read_cache_index(const std::filesystem::path& directory);

// Returns the mapped data set; `index` is the folder's. Verifies the checksums and calls `on_block`
// repeatedly meanwhile; `on_block` may throw. Throws UnusableData if a checksum differs, and
// std::system_error if a file cannot be read.
[[nodiscard]] Dataset open_cache(const std::filesystem::path& directory, const CacheIndex& index,
                                 const std::function<void()>& on_block);

// Detects whether a file changed since its conversion.

// Returns a line that changes if the file's bytes may have changed: path, inode, size, and the
// times of the last write and the last status change (ctime). Only the kernel sets ctime, so `touch
// -d`, `cp -p` and `rsync -t` cannot restore an old one. A file that another was renamed over gets
// that file's inode and ctime. A change of name or permissions also changes the line.
[[nodiscard]] inline std::string file_fingerprint(const std::filesystem::path& path,
                                                  const struct stat& status) {
  const auto time = [](const timespec& at) {
    return std::to_string(at.tv_sec) + "." + std::to_string(at.tv_nsec);
  };
  // The path is absolute and may contain any byte but zero, so its length comes first.
  const std::string absolute = std::filesystem::absolute(path).string();
  return std::to_string(absolute.size()) + " " + absolute + " inode " +
         std::to_string(status.st_ino) + " bytes " + std::to_string(status.st_size) + " written " +
         time(status.st_mtim) + " changed " + time(status.st_ctim) + "\n";
}

}  // namespace disttf::data
