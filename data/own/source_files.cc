#include "data/own/source_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/file.h"
#include "data/own/arrays.h"
#include "data/own/cache.h"
#include "data/own/csv.h"
#include "data/own/image_folder.h"
#include "data/own/libsvm.h"
#include "data/own/lower_case.h"

namespace disttf::data {
namespace {

using Path = std::filesystem::path;

enum class TableFormat : std::uint8_t { kCsv, kLibsvm };

struct Ending {
  std::string_view text;
  TableFormat format;
};

constexpr std::array<Ending, 6> kEndings = {{{".csv", TableFormat::kCsv},
                                             {".tsv", TableFormat::kCsv},
                                             {".txt", TableFormat::kCsv},
                                             {".libsvm", TableFormat::kLibsvm},
                                             {".svm", TableFormat::kLibsvm},
                                             {".svmlight", TableFormat::kLibsvm}}};
constexpr const char* kTableEndings = ".csv, .tsv, .txt, .libsvm, .svm, .svmlight";

struct Table {
  Path path;
  std::optional<Part> part;
  TableFormat format = TableFormat::kCsv;
};

std::optional<TableFormat> format_of(const Path& path) {
  const std::string ending = lower_case(path.extension().string());
  const auto* const found = std::ranges::find(kEndings, ending, &Ending::text);
  return found == kEndings.end() ? std::nullopt : std::optional(found->format);
}

struct stat status_of(const Path& path) {
  struct stat status {};
  // Opening refuses folders, pipes and unreadable files before the conversion begins.
  static_cast<void>(open_for_reading(path, status));
  return status;
}

// Returns the paths in a folder, sorted by name.
std::vector<Path> paths_in(const Path& directory) {
  std::error_code error;
  std::vector<Path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    paths.push_back(entry.path());
  }
  if (error) throw std::system_error(error, "--data: cannot read " + directory.string());
  // The order of a directory is arbitrary, and messages should not depend on it.
  std::ranges::sort(paths);
  return paths;
}

// Returns the tables of a folder; empty if there is none to train on.
std::vector<Table> tables_in(const Path& directory) {
  const std::vector<Path> paths = paths_in(directory);
  std::vector<Table> tables;
  for (const Part part : {Part::kTrain, Part::kValidation, Part::kTest}) {
    const std::size_t before = tables.size();
    for (const Path& path : paths) {
      const auto format = format_of(path);
      if (!format || lower_case(path.stem().string()) != part_name(part)) continue;
      if (tables.size() > before) {
        throw UnusableData("--data: " + directory.string() + " has both " +
                           tables.back().path.filename().string() + " and " +
                           path.filename().string() + "; one of them is allowed");
      }
      tables.push_back({.path = path, .part = part, .format = *format});
    }
    // The loop begins with training: without a training table the others are not used.
    if (tables.empty()) {
      return tables;
    }
  }
  return tables;
}

// The indices of all sparse files of a set, computed when the first of them is opened.
class SharedIndices {
 public:
  explicit SharedIndices(LibsvmOptions options) : options_(options) {}

  void add(const Path& path) { paths_.push_back(path); }
  // Returns the indices of all files, with the row count of one of them.
  LibsvmIndices of(const Path& path, const SourceFile::Progress& on_progress) {
    if (each_.empty()) {
      find(on_progress);
    }
    // The columns of a sparse set are those of all its files together: a test file may lack the
    // largest index.
    LibsvmIndices indices = all_;
    indices.rows =
        each_.at(static_cast<std::size_t>(std::ranges::find(paths_, path) - paths_.begin())).rows;
    return indices;
  }
  [[nodiscard]] const LibsvmOptions& options() const noexcept { return options_; }

 private:
  void find(const SourceFile::Progress& on_progress) {
    std::uint64_t bytes_before = 0;
    for (const Path& path : paths_) {
      std::uint64_t bytes_read = 0;
      each_.push_back(libsvm_indices(path, options_, [&](std::uint64_t bytes) {
        bytes_read = bytes;
        if (on_progress) on_progress(bytes_before + bytes);
      }));
      bytes_before += bytes_read;
      all_.add(each_.back());
    }
  }

  const LibsvmOptions options_;
  std::vector<Path> paths_;
  std::vector<LibsvmIndices> each_;  // by path
  LibsvmIndices all_;
};

// Sparse text has neither column names nor column numbers, so those options are refused.
void check_sparse(const OwnDataOptions& options, const Path& path) {
  const char* const given = !options.label_column.empty()      ? "--label_column: "
                            : !options.ignored_columns.empty() ? "--ignore_columns: "
                                                               : nullptr;
  if (given != nullptr) {
    throw UnusableData(given + path.string() +
                       " is sparse text, in which the label is the first word of a line; it is "
                       "allowed with the other tables");
  }
}

std::vector<SourceFile> table_files(const std::vector<Table>& tables, const OwnDataOptions& options,
                                    std::size_t threads) {
  // Shared by all files of the set, which are opened one after the other.
  const auto shared =
      std::make_shared<SharedIndices>(LibsvmOptions{.label_is_number = options.label_is_number,
                                                    .skipped_lines = options.skipped_lines,
                                                    .threads = threads});
  const CsvOptions csv = {.label_column = options.label_column,
                          .label_is_number = options.label_is_number,
                          .ignored_columns = options.ignored_columns,
                          .skipped_lines = options.skipped_lines,
                          .threads = threads};
  // The first file decides whether and how columns are named; later ones compare their first line
  // with these names.
  const auto names = std::make_shared<std::vector<std::string>>();  // of the first file
  std::vector<SourceFile> files;
  for (const Table& table : tables) {
    SourceFile file;
    file.path = table.path;
    file.part = table.part;
    const struct stat status = status_of(table.path);
    file.bytes = static_cast<std::uint64_t>(status.st_size);
    file.fingerprint = file_fingerprint(table.path, status);
    if (table.format == TableFormat::kLibsvm) {
      check_sparse(options, table.path);
      shared->add(table.path);
      file.open = [shared, path = table.path](const SourceFile::Progress& on_progress) {
        const LibsvmIndices indices = shared->of(path, on_progress);
        return open_libsvm(path, shared->options(), indices);
      };
    } else {
      file.open = [csv, names, path = table.path](const SourceFile::Progress& /*on_progress*/) {
        // `names` is read when the file is opened: the first one has filled it by then.
        CsvOptions of_file = csv;
        of_file.known_names = *names;
        std::unique_ptr<RowSource> source = open_csv(path, of_file);
        if (names->empty()) *names = source->all_names();
        return source;
      };
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<SourceFile> array_files(const std::vector<ArrayPair>& pairs,
                                    const OwnDataOptions& options) {
  if (!options.label_column.empty() || !options.ignored_columns.empty() ||
      options.skipped_lines != 0) {
    throw UnusableData("--data: " + options.path.string() +
                       " has arrays; --label_column, --ignore_columns and --skip_lines are allowed "
                       "only with text tables");
  }
  std::vector<SourceFile> files;
  for (const ArrayPair& pair : pairs) {
    SourceFile file;
    file.path = pair.examples.text();
    file.part = pair.part;
    file.bytes = pair.examples.bytes;
    // With lengths, because the name of an entry may contain any byte.
    for (const ArrayLocation& place : {pair.examples, pair.labels}) {
      file.fingerprint += std::to_string(place.entry.size()) + " " + place.entry + " " +
                          file_fingerprint(place.path, status_of(place.path));
    }
    file.has_images = are_images(pair.examples);
    file.open = [pair, is_number = options.label_is_number](const SourceFile::Progress&) {
      return open_arrays(pair, is_number);
    };
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<SourceFile> image_files(std::vector<ClassFolders> parts, std::size_t threads) {
  // One object for all parts, which find the common shape of their images once.
  const auto set = std::make_shared<ImageSet>(std::move(parts), threads);
  std::vector<SourceFile> files;
  for (std::size_t i = 0; i < set->parts().size(); ++i) {
    const ClassFolders& part = set->parts()[i];
    SourceFile file;
    file.path = part.path;
    file.part = part.part;
    file.bytes = part.bytes;
    file.fingerprint = part.fingerprint;
    file.has_images = true;
    file.open = [set, i](const SourceFile::Progress& on_progress) {
      return set->open(i, on_progress);
    };
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

std::vector<SourceFile> source_files(const OwnDataOptions& options, std::size_t threads) {
  const Path& path = options.path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (const std::vector<Table> tables = tables_in(path); !tables.empty()) {
      return table_files(tables, options, threads);
    }
    // A single array beside images may be unrelated, so it is an error only if there are no images.
    std::optional<UnusableData> refusal;
    try {
      if (const std::vector<ArrayPair> arrays = arrays_in_folder(path); !arrays.empty()) {
        return array_files(arrays, options);
      }
    } catch (const UnusableData& unusable) {
      refusal = unusable;
    }
    if (std::vector<ClassFolders> images = class_folders_in(path); !images.empty()) {
      return image_files(std::move(images), threads);
    }
    if (refusal) throw UnusableData(refusal->what());
    throw UnusableData("--data: " + path.string() + " has no table called train (" + kTableEndings +
                       "), no arrays called x_train and y_train (.npy), no folders of images and " +
                       "no IDX files");
  }
  if (error) throw std::system_error(error, "--data: cannot read " + path.string());
  const std::string ending = lower_case(path.extension().string());
  if (ending == ".npz") {
    return array_files(arrays_of_archive(path), options);
  }
  if (ending == ".npy") {
    throw UnusableData(
        "--data: " + path.string() +
        " is one array without labels; use a folder with x.npy and y.npy, or one .npz");
  }
  const auto format = format_of(path);
  if (!format) {
    throw UnusableData("--data: " + path.string() + " ends with none of " + kTableEndings +
                       " and .npz, and is not a folder");
  }
  return table_files({{.path = path, .part = std::nullopt, .format = *format}}, options, threads);
}

}  // namespace disttf::data
