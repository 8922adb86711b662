// A data set on disk: files whose contents are known by SHA-256, each possibly with the .gz that it
// was extracted from beside it, or all with the archive that they were in.
//
//   directory/train-images-idx3-ubyte.gz        what is downloaded
//   directory/train-images-idx3-ubyte           extracted from it once, then read
//   directory/train-images-idx3-ubyte.verified  the stamp: "this very file was hashed"
//
// No byte is used unless its SHA-256 was found to be the pinned one. An extracted file is not
// hashed on every start (47 MB): its stamp holds the size, inode, and times of last modification
// and status change of the file that was hashed, and is believed as long as all of them fit. A
// file that was touched in any way is hashed again. (What a stamp cannot see: a write within the
// same tick of the file system's clock, milliseconds after our own, and a disk that flips bits
// under an unchanged inode. Deleting the stamps has everything hashed.)
//
// Of some sets only the .gz or the archive are pinned: nobody here has seen what is in them. Their
// extracted files are right because they came out of what is pinned, which only the stamp
// remembers: it names that, and a file whose stamp is gone or does not fit is not hashed but
// extracted again, and wrong where there is nothing to extract it from. So a file that somebody
// else has extracted is not used.
//
// A data set is a copy in this task's memory (55 MB of MNIST), not a mapping of the files: whoever
// writes into one of them, or shortens it, while a run trains would change what it trains on, or
// end it with SIGBUS. A check now and then would find that out only after gradients of other
// images have been added to everybody's parameters.
//
// Several tasks may open one directory at once: files appear by rename, whole or not at all, a
// lock on the directory has the work done once, and without it it is done twice with equal bytes.
//
// A file that is wrong is reported, not used, and stays where it is unless replace_wrong is set.
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

// All but the last are IDX files (data/idx.h), and a part of a set, training or test, has one of
// images and one of labels. kLabelTable: integers, the first of each row the label. kRecords:
// images with their labels (data/records.h), and a part may have several, in order.
enum class FileKind : std::uint8_t { kImages, kLabels, kLabelTable, kRecords };

// One file of a set. The views are borrowed, of literals as a rule.
struct SetFile {
  std::string_view name;  // "train-images-idx3-ubyte"
  FileKind kind = FileKind::kImages;
  bool is_test = false;  // else it is for training, and validation
  std::uint32_t rows = 0;
  ImageShape shape{};         // of an image
  std::uint32_t columns = 0;  // of a label table
  // Of the extracted contents; their size follows from the rows. Empty: they are what the .gz or
  // the archive holds.
  std::string_view sha256{};
  // The archive that it comes in, in the place of a .gz, and its name there. Null: none.
  const Archive* archive = nullptr;
  std::string_view member{};
  std::size_t gz_bytes = 0;      // size of the .gz; 0: there is none (built-in data)
  std::string_view gz_sha256{};  // of the .gz
  // The same contents as somebody else has compressed them, a distribution's package say; 0:
  // nobody.
  std::size_t other_gz_bytes = 0;
  std::string_view other_gz_sha256{};

  [[nodiscard]] std::size_t size_bytes() const noexcept;  // of the extracted contents
  [[nodiscard]] std::string gz_name() const { return std::string(name) + ".gz"; }
};

struct FileSet {
  std::string_view name;      // Dataset::name
  std::string_view checksum;  // Dataset::checksum; empty: computed when the set is opened
  // Those for training first; of each part images before labels. The views are borrowed as well.
  std::span<const SetFile> files;
  std::size_t classes = 10;      // labels are below
  std::uint8_t first_label = 0;  // what the files call class 0; not of records and label tables
  // The files have each image's columns one after the other, where others have its rows. Such
  // images are square and grey.
  bool has_columns_first = false;
  std::span<const std::string_view> class_names{};  // Dataset::class_names; as many, or none
  // The first rows of the training files. TensorFlow's read_data_sets keeps 5 000 of MNIST.
  std::size_t validation_rows = 5000;

  // Of the first file, and so of all.
  [[nodiscard]] constexpr const ImageShape& shape() const noexcept { return files[0].shape; }
};

// Whether the bytes at `path` (any name: a download under way to its final one) are `file`'s .gz.
[[nodiscard]] FileCheck check_gz(const std::filesystem::path& path, const SetFile& file);

// Whether `directory` can provide `file`: extracted and right, or as a .gz or in an archive that is
// right.
[[nodiscard]] FileCheck check_file(const std::filesystem::path& directory, const SetFile& file);
// The same of all files of a set, in their order; an archive that several come in is looked at
// once.
[[nodiscard]] std::vector<FileCheck> check_files(const std::filesystem::path& directory,
                                                 const FileSet& set);
// Whether all are ready.
[[nodiscard]] bool provides(const std::filesystem::path& directory, const FileSet& set);

struct OpenOptions {
  // Put a right file in the place of an extracted one that is wrong. Otherwise the wrong one stays
  // and the right contents are used.
  bool replace_wrong = false;
  // Where a .gz is looked for besides the directory itself, which a package has left, say. Nothing
  // is written there; what is extracted goes into the directory. Empty: nowhere.
  std::filesystem::path gz_directory{};
  // Called before a .gz or an archive is extracted, with its path.
  std::function<void(const std::filesystem::path& packed)> on_extract{};
  // Called with a sentence when something is amiss that does not keep the set from being used: the
  // directory cannot be written (the contents are then held in memory alone), a wrong file lies
  // about.
  std::function<void(const std::string& sentence)> on_warning{};
};

// The set, read from the extracted files; extracts those that are only there packed. Throws
// std::system_error when a file is absent (ENOENT) or wrong (DataError), with its sentence.
[[nodiscard]] Dataset open_file_set(const std::filesystem::path& directory, const FileSet& set,
                                    const OpenOptions& options = {});

// --- for sets that are made rather than downloaded, and for tests ---

// Provides the contents of a file that is not there, or wrong, as `found` says. May throw.
using MakeContents =
    std::function<std::vector<std::uint8_t>(const SetFile& file, const FileCheck& found)>;

// As above, with `make` in the place of a .gz or an archive; `file` is one of set.files, and no
// file is asked for twice. What it returns is hashed: anything but the pinned contents is thrown
// out with DataError::kWrongChecksum.
[[nodiscard]] Dataset open_file_set(const std::filesystem::path& directory, const FileSet& set,
                                    const MakeContents& make, const OpenOptions& options);

// Opens `directory/file.name` if its contents are the pinned ones; else `out` is untouched.
[[nodiscard]] FileCheck open_verified(const std::filesystem::path& directory, const SetFile& file,
                                      std::vector<std::uint8_t>& out);

// Writes contents whose SHA-256 is known to be file.sha256, or which came out of the pinned .gz or
// archive where that is empty, and their stamp. Throws std::system_error when the directory cannot
// be written.
void write_verified(const std::filesystem::path& directory, const SetFile& file,
                    std::span<const std::uint8_t> contents);

// The set of what its files hold, in the order of set.files: images upright, channels last, and
// labels from 0 on. Throws std::system_error with the DataError where they are not of the kinds,
// shapes and rows that the set has.
[[nodiscard]] Dataset assemble(const FileSet& set, std::vector<std::vector<std::uint8_t>> contents);

}  // namespace disttf::data
