// A data set on disk: files whose contents are identified by SHA-256. Each file may have the .gz
// that it was extracted from beside it, or the whole set may have its archive.
//
//  directory/train-images-idx3-ubyte.gz        the downloaded file
//   directory/train-images-idx3-ubyte           extracted from it once, then read
//   directory/train-images-idx3-ubyte.verified  the checksum marker: "this file was hashed"
//
// No byte is used unless its SHA-256 has matched the pinned one. An extracted file is not hashed on
// every start (47 MB). Its checksum marker holds the size, inode, and times of last modification
// and status change of the hashed file, and is valid as long as all of them match. A file that was
// touched in any way is hashed again. A marker cannot detect a write within the same tick of the
// file system's clock (milliseconds after our own write), nor a disk that flips bits under an
// unchanged inode. Deleting the markers causes every file to be hashed again.
//
// For some sets only the .gz or the archive is pinned, because the checksums of the extracted files
// are not known. Such an extracted file is right because it came out of the pinned source, and only
// the checksum marker records that: it names the source. If the marker is missing or does not
// match, the file is extracted again instead of hashed, and counts as wrong if there is no source.
// A file that another program extracted is therefore not used.
//
// A data set is a copy in this task's memory (55 MB for MNIST), not a mapping of the files. With a
// mapping, a process that writes to a file during a run would change the training data, and one
// that shortens it would end the run with SIGBUS. A periodic check would notice that only after
// gradients of other images have reached the shared parameters.
//
// Several tasks may open one directory at once. Files appear by rename, complete or not at all. A
// directory lock avoids duplicate work; without the lock the work is done twice with equal bytes.
//
// A wrong file is reported and not used, and is kept unless replace_wrong is set.
// Callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "data/archive.h"
#include "data/dataset.h"
#include "data/verified_file.h"

namespace disttf::data {

// The kinds of files. All but kRecords are IDX files (data/idx.h), and a part of a set (training or
// test) has one file of images and one of labels. kLabelTable: integers, the first of each row is
// the label. kRecords: images with their labels (data/records.h); a part may have several such
// files, in order.
enum class FileKind : std::uint8_t { kImages, kLabels, kLabelTable, kRecords };

// One file of a set. The views are borrowed, usually from literals.
struct SetFile {
  std::string_view name;  // "train-images-idx3-ubyte"
  FileKind kind = FileKind::kImages;
  bool is_test = false;  // otherwise for training and validation
  std::uint32_t rows = 0;
  ImageShape shape{};         // of an image
  std::uint32_t columns = 0;  // of a label table
  // The SHA-256 of the extracted contents; their size follows from the rows. Empty: only the .gz or
  // the archive is pinned.
  std::string_view sha256{};
  // The archive that contains the file instead of a .gz, and the file's name in it. Null: none.
  const Archive* archive = nullptr;
  std::string_view member{};
  std::size_t gz_bytes = 0;      // size of the .gz; 0: there is none (built-in data)
  std::string_view gz_sha256{};  // of the .gz
  // An alternative .gz with the same contents, for example from a distribution's package; 0: none.
  std::size_t other_gz_bytes = 0;
  std::string_view other_gz_sha256{};

  [[nodiscard]] std::size_t size_bytes() const noexcept;  // of the extracted contents
  [[nodiscard]] std::string gz_name() const { return std::string(name) + ".gz"; }
};

struct FileSet {
  std::string_view name;      // Dataset::name
  std::string_view checksum;  // Dataset::checksum; empty: computed when the set is opened
  // Training files first, and images before labels within a part. The views are borrowed as well.
  std::span<const SetFile> files;
  std::size_t classes = 10;      // labels are below this number
  std::uint8_t first_label = 0;  // of class 0; not for records, label tables
  // The files store each image column by column instead of row by row. Such images are square and
  // grey.
  bool has_columns_first = false;
  std::span<const std::string_view> class_names{};  // Dataset::class_names; as many, or none
  // The first rows of the training files. TensorFlow's read_data_sets uses 5 000 of MNIST.
  std::size_t validation_rows = 5000;

  // The shape of the first file, which all files share.
  [[nodiscard]] constexpr const ImageShape& shape() const noexcept { return files[0].shape; }
};

// Returns whether the bytes at `path` (of any name, including a partial download's) are `file`'s
// .gz.
[[nodiscard]] FileCheck check_gz(const std::filesystem::path& path, const SetFile& file);

// Returns whether `directory` can provide `file`: extracted and right, or as a right .gz or in a
// right archive.
[[nodiscard]] FileCheck check_file(const std::filesystem::path& directory, const SetFile& file);
// Does the same for all files of a set, in order; a shared archive is checked once.
[[nodiscard]] std::vector<FileCheck> check_files(const std::filesystem::path& directory,
                                                 const FileSet& set);
// Returns whether all files of the set are ready.
[[nodiscard]] bool provides(const std::filesystem::path& directory, const FileSet& set);

struct OpenOptions {
  // Replace a wrong extracted file with the right contents. Otherwise the wrong file stays on disk
  // and the right contents are used from memory.
  bool replace_wrong = false;
  // An additional directory to search for .gz files, for example a package's. Nothing is written
  // there; extracted files go to the main directory. Empty: none.
  std::filesystem::path gz_directory{};
  // Called with the path of a .gz or an archive before it is extracted.
  std::function<void(const std::filesystem::path& packed)> on_extract{};
  // Called with a sentence about a problem that does not prevent use of the set: the directory is
  // not writable (the contents then stay in memory), or a wrong file is present.
  std::function<void(const std::string& sentence)> on_warning{};
};

// Returns the set, read from the extracted files; extracts the files that exist only in packed
// form. Throws std::system_error with its sentence if a file is absent (ENOENT) or wrong
// (DataError).
[[nodiscard]] Dataset open_file_set(const std::filesystem::path& directory, const FileSet& set,
                                    const OpenOptions& options = {});

// --- for generated sets and for tests ---

// Returns the contents of a file that is absent or wrong, as `found` describes. May throw.
using MakeContents =
    std::function<std::vector<std::uint8_t>(const SetFile& file, const FileCheck& found)>;

// Like the above, with `make` instead of a .gz or an archive; `file` is one of set.files, and
// `make` is called at most once per file. Its result is hashed: contents other than the pinned ones
// are rejected with DataError::kWrongChecksum.
[[nodiscard]] Dataset open_file_set(const std::filesystem::path& directory, const FileSet& set,
                                    const MakeContents& make, const OpenOptions& options);

// Reads `directory/file.name` into `out` if its contents are the pinned ones; otherwise leaves
// `out` unchanged.
[[nodiscard]] FileCheck open_verified(const std::filesystem::path& directory, const SetFile& file,
                                      std::vector<std::uint8_t>& out);

// Writes verified contents and their checksum marker. The SHA-256 of `contents` must be
// file.sha256; if that is empty, they must come from the pinned .gz or archive. Throws
// std::system_error if the directory is not writable.
void write_verified(const std::filesystem::path& directory, const SetFile& file,
                    std::span<const std::uint8_t> contents);

// Returns the data set made of the files' contents, in the order of set.files: images upright,
// channels last, labels from 0. Throws std::system_error with the DataError if the contents do not
// have the set's kinds, shapes and rows.
[[nodiscard]] Dataset assemble(const FileSet& set, std::vector<std::vector<std::uint8_t>> contents);

}  // namespace disttf::data
