#include "data/emnist.h"

#include <array>
#include <string_view>

namespace disttf::data {
namespace {

// Size and SHA-256 as TensorFlow Datasets lists them (url_checksums/emnist.txt). No published list
// of the checksums of the files inside is known.
constexpr Archive kEmnistArchive{
    .name = "gzip.zip",
    .kind = ArchiveKind::kZip,
    .size_bytes = 561753746,
    .sha256 = "fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e"};

// Digits, upper-case letters, lower-case letters.
constexpr std::array<std::string_view, 62> kAllClasses{
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F",
    "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U", "V",
    "W", "X", "Y", "Z", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l",
    "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z"};
// The same, with one class for each letter whose two cases look alike.
constexpr std::array<std::string_view, 47> kMergedClasses{
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F",
    "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U", "V",
    "W", "X", "Y", "Z", "a", "b", "d", "e", "f", "g", "h", "n", "q", "r", "t"};
constexpr std::size_t kFirstSmallLetter = 36;  // in kAllClasses

constexpr std::string_view kFolder = "gzip/";

// Builds the entry of one file from its name in the archive; the extracted name omits the folder
// and .gz.
constexpr SetFile emnist_file(std::string_view member, FileKind kind, bool is_test,
                              std::uint32_t rows) {
  const std::size_t name_size = member.size() - kFolder.size() - std::string_view(".gz").size();
  return {.name = member.substr(kFolder.size(), name_size),
          .kind = kind,
          .is_test = is_test,
          .rows = rows,
          .archive = &kEmnistArchive,
          .member = member};
}

// Training images and labels, then test images and labels.
constexpr std::array<SetFile, 4> emnist_files(const std::array<std::string_view, 4>& members,
                                              std::uint32_t train_rows, std::uint32_t test_rows) {
  return {emnist_file(members[0], FileKind::kImages, false, train_rows),
          emnist_file(members[1], FileKind::kLabels, false, train_rows),
          emnist_file(members[2], FileKind::kImages, true, test_rows),
          emnist_file(members[3], FileKind::kLabels, true, test_rows)};
}

constexpr FileSet emnist(std::string_view name, std::span<const SetFile> files,
                         std::span<const std::string_view> class_names,
                         std::uint8_t first_label = 0) {
  return {.name = name,
          .checksum = {},
          .files = files,
          .classes = class_names.size(),
          .first_label = first_label,
          // EMNIST stores each image transposed.
          .has_columns_first = true,
          .class_names = class_names};
}

constexpr std::array kByClassFiles = emnist_files({"gzip/emnist-byclass-train-images-idx3-ubyte.gz",
                                                   "gzip/emnist-byclass-train-labels-idx1-ubyte.gz",
                                                   "gzip/emnist-byclass-test-images-idx3-ubyte.gz",
                                                   "gzip/emnist-byclass-test-labels-idx1-ubyte.gz"},
                                                  697932, 116323);
constexpr FileSet kByClass = emnist("EMNIST-byclass", kByClassFiles, kAllClasses);

constexpr std::array kByMergeFiles = emnist_files({"gzip/emnist-bymerge-train-images-idx3-ubyte.gz",
                                                   "gzip/emnist-bymerge-train-labels-idx1-ubyte.gz",
                                                   "gzip/emnist-bymerge-test-images-idx3-ubyte.gz",
                                                   "gzip/emnist-bymerge-test-labels-idx1-ubyte.gz"},
                                                  697932, 116323);
constexpr FileSet kByMerge = emnist("EMNIST-bymerge", kByMergeFiles, kMergedClasses);

constexpr std::array kBalancedFiles =
    emnist_files({"gzip/emnist-balanced-train-images-idx3-ubyte.gz",
                  "gzip/emnist-balanced-train-labels-idx1-ubyte.gz",
                  "gzip/emnist-balanced-test-images-idx3-ubyte.gz",
                  "gzip/emnist-balanced-test-labels-idx1-ubyte.gz"},
                 112800, 18800);
constexpr FileSet kBalanced = emnist("EMNIST-balanced", kBalancedFiles, kMergedClasses);

// The paper counts 88 800 + 14 800 letters; the files contain more.
constexpr std::array kLettersFiles = emnist_files({"gzip/emnist-letters-train-images-idx3-ubyte.gz",
                                                   "gzip/emnist-letters-train-labels-idx1-ubyte.gz",
                                                   "gzip/emnist-letters-test-images-idx3-ubyte.gz",
                                                   "gzip/emnist-letters-test-labels-idx1-ubyte.gz"},
                                                  124800, 20800);
constexpr FileSet kLetters =
    emnist("EMNIST-letters", kLettersFiles, std::span(kAllClasses).subspan(kFirstSmallLetter),
           /*first_label=*/1);

constexpr std::array kEmnistDigitsFiles =
    emnist_files({"gzip/emnist-digits-train-images-idx3-ubyte.gz",
                  "gzip/emnist-digits-train-labels-idx1-ubyte.gz",
                  "gzip/emnist-digits-test-images-idx3-ubyte.gz",
                  "gzip/emnist-digits-test-labels-idx1-ubyte.gz"},
                 240000, 40000);
constexpr FileSet kEmnistDigits =
    emnist("EMNIST-digits", kEmnistDigitsFiles, std::span(kAllClasses).first(10));

constexpr std::array kEmnistMnistFiles = emnist_files(
    {"gzip/emnist-mnist-train-images-idx3-ubyte.gz", "gzip/emnist-mnist-train-labels-idx1-ubyte.gz",
     "gzip/emnist-mnist-test-images-idx3-ubyte.gz", "gzip/emnist-mnist-test-labels-idx1-ubyte.gz"},
    60000, 10000);
constexpr FileSet kEmnistMnist =
    emnist("EMNIST-mnist", kEmnistMnistFiles, std::span(kAllClasses).first(10));

}  // namespace

const FileSet& emnist_byclass() noexcept { return kByClass; }
const FileSet& emnist_bymerge() noexcept { return kByMerge; }
const FileSet& emnist_balanced() noexcept { return kBalanced; }
const FileSet& emnist_letters() noexcept { return kLetters; }
const FileSet& emnist_digits() noexcept { return kEmnistDigits; }
const FileSet& emnist_mnist() noexcept { return kEmnistMnist; }

}  // namespace disttf::data
