#include "data/own/own_data.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "data/checksums.h"
#include "data/file.h"
#include "data/own/classes.h"
#include "data/own/findings.h"
#include "data/own/idx_folder.h"
#include "data/own/shown_text.h"
#include "data/own/source_files.h"
#include "data/posix_file_system.h"
#include "text/shown_text.h"

namespace disttf::data {
namespace {

using Path = std::filesystem::path;

// The limit of the name at the beginning of the result line.
constexpr std::size_t kMostWordBytes = 40;
// Longer than any conversion should take; after that the work is done twice instead of waiting for
// a stopped holder.
constexpr std::chrono::minutes kConversionPatience{30};

// Returns the shares to hold out of a file's rows: 0 for a part that has its own file.
HeldOut shares_of(const SourceFile& file, const std::vector<SourceFile>& all,
                  const HeldOut& wanted) {
  const auto has_file = [&all](Part part) {
    return std::ranges::any_of(all, [part](const SourceFile& each) { return each.part == part; });
  };
  // Only the training file gives up rows: the files of other parts are used completely.
  if (file.part.value_or(Part::kTrain) != Part::kTrain) {
    return {.validation = 0, .test = 0};
  }
  return {.validation = has_file(Part::kValidation) ? 0 : wanted.validation,
          .test = has_file(Part::kTest) ? 0 : wanted.test};
}

// Returns the SHA-256 of everything that the converted form depends on.
std::string source_of(const OwnDataOptions& options, const std::vector<SourceFile>& files) {
  // Names may contain any bytes, so their lengths come first.
  const auto with_length = [](const std::string& name) {
    return " " + std::to_string(name.size()) + " " + name;
  };
  std::string text = (options.label_is_number ? "number" : "class") +
                     with_length(options.label_column) + "\nignored";
  for (const std::string& column : options.ignored_columns) {
    text += with_length(column);
  }
  // The shares decide which rows each part gets, so they are a part of the identity.
  text += "\nskipped " + std::to_string(options.skipped_lines) + "\nheld out " +
          std::to_string(options.held_out.validation) + " " +
          std::to_string(options.held_out.test) + "\n";
  // The markers contain the path, size and times of each file, so a changed file leads to a new
  // conversion.
  for (const SourceFile& file : files) {
    text += file.fingerprint;
  }
  return sha256_hex(std::as_bytes(std::span(text)));
}

// Returns the folder of the converted form, one for each path and set of read options.
// The name contains the options but not the files' state, so a changed file replaces its earlier
// conversion instead of adding one.
Path cache_of(const OwnDataOptions& options, const OwnDataHooks& hooks) {
  const std::string text =
      // An absolute path, so that the same file found from another folder uses the same conversion.
      std::filesystem::absolute(options.path).string() + "\n" + source_of(options, {});
  constexpr std::size_t kDigits = 12;
  return hooks.cache_directory /
         (own_data_name(options.path) + "-" +
          sha256_hex(std::as_bytes(std::span(text))).substr(0, kDigits) + ".data");
}

// "images of 28x28x1"
std::string kind_text(const std::optional<ImageShape>& images) {
  return images ? "images of " + std::to_string(images->height) + "x" +
                      std::to_string(images->width) + "x" + std::to_string(images->channels)
                : "rows of numbers";
}

// Logs what was detected in the files.
void say(const OwnDataHooks& hooks, const char* what, const Path& path,
         const std::optional<ImageShape>& images, std::size_t columns,
         const std::string& label_column) {
  if (!hooks.on_message) {
    return;
  }
  const std::string beginning = std::string(what) + " " + shown_text(path.string()) + ": ";
  hooks.on_message(images ? beginning + kind_text(images)
                          : beginning + std::to_string(columns) +
                                (columns == 1 ? " column" : " columns") +
                                " of numbers, the label is in column " + printable(label_column));
}

// Converts all files of a set and writes the folder.
class Conversion {
 public:
  Conversion(const OwnDataOptions& options, const OwnDataHooks& hooks,
             const std::vector<SourceFile>& files, const Path& directory)
      : options_(options), hooks_(hooks), files_(files), writer_(directory) {}

  CacheIndex run(std::string source) {
    for (const SourceFile& file : files_) {
      convert(file);
      bytes_before_ += file.bytes;
    }
    // After all files, because only now every row has been assigned to a part.
    check_parts();
    // A part with its own file must share at least one class with training; drawn parts do so
    // anyway.
    check_classes_of(Part::kValidation);
    check_classes_of(Part::kTest);
    CacheIndex index;
    index.name = own_data_name(options_.path);
    index.source = std::move(source);
    index.label_column = label_column_;
    index.columns = sums_->summaries();
    index.images = images_;
    for (std::size_t i = 0; i < index.columns.size(); ++i) {
      index.columns[i].counts_rows = counters_->counts(i);
    }
    // The classes are known only after the last row, so the labels are renumbered in place at the
    // end.
    std::vector<std::uint8_t> final_places;
    index.classes = classes_.in_order(final_places);
    if (!options_.label_is_number && index.classes.size() < 2) {
      throw UnusableData("--data: " + options_.path.string() + ": all labels in column " +
                         printable(label_column_) + " are \"" + printable(index.classes.front()) +
                         "\"; two classes at least are needed");
    }
    if (options_.label_is_number) {
      index.target = target_sums_->summaries().front();
    }
    // Stored in the index, so a later run that uses the converted form logs the same warnings.
    index.warnings = warnings_;
    for (const std::string& warning : classes_.warnings()) index.warnings.push_back(warning);
    writer_.finish(index, final_places);
    return index;
  }

 private:
  void convert(const SourceFile& file) {
    const std::unique_ptr<RowSource> source = file.open([this](std::uint64_t bytes) {
      if (hooks_.on_progress) {
        hooks_.on_progress(bytes_before_ + bytes, all_bytes());
      }
    });
    // Checked before the first row is read, because a conversion may take long.
    check_columns(*source, file);
    for (const std::string& warning : source->warnings()) warnings_.push_back(shown_text(warning));
    check_room(*source);
    // Each file draws from its own row numbers, so a change of one file does not move the rows of
    // another.
    HoldOut hold_out(shares_of(file, files_, options_.held_out), hooks_.purpose,
                     hooks_.random_bits);
    std::uint64_t row = 0;
    RowBlock block;
    while (source->next(block)) {
      take(block, file, hold_out, row);
      row += block.rows();
      // Row numbers have 32 bits in the sampler.
      if (row > std::numeric_limits<std::uint32_t>::max()) {
        throw UnusableData(file.path.string() + ": it has more than 2^32 rows");
      }
      if (hooks_.on_progress) {
        hooks_.on_progress(bytes_before_ + source->bytes_read(), all_bytes());
      }
    }
  }
  // All files of a set have the same columns, or images of one shape.
  void check_columns(const RowSource& source, const SourceFile& file) {
    if (!sums_) {
      columns_ = source.columns();
      images_ = source.images();
      label_column_ = source.label_column();
      has_names_ = source.has_names();
      // The first file, which is the one to train on, defines the columns for all others.
      sums_.emplace(columns_);
      target_sums_.emplace(std::vector{label_column_});
      counters_.emplace(columns_.size());
      say(hooks_, "Converting", options_.path, images_, columns_.size(), label_column_);
      return;
    }
    if (source.images() != images_) {
      throw UnusableData(file.path.string() + ": it has " + kind_text(source.images()) + ", and " +
                         files_.front().path.string() + " has " + kind_text(images_));
    }
    // Otherwise one file would have its names read as a row, or a row as names.
    if (source.has_names() != has_names_) {
      const auto says = [](bool has) { return has ? "has names of columns" : "has none"; };
      throw UnusableData(file.path.string() + ": its first line " + says(source.has_names()) +
                         ", that of " + files_.front().path.string() + " " + says(has_names_) +
                         "; names are allowed in all files of a set, or in none");
    }
    if (source.columns() != columns_ || source.label_column() != label_column_) {
      throw UnusableData(
          file.path.string() + ": its columns are not those of " + files_.front().path.string() +
          " (" + std::to_string(source.columns().size()) + " of numbers and the label " +
          printable(source.label_column()) + ", there " + std::to_string(columns_.size()) +
          " and " + printable(label_column_) + ")");
    }
  }
  // Fails before the conversion starts if the disk is too small.
  void check_room(const RowSource& source) const {
    std::error_code error;
    const std::uint64_t room = std::filesystem::space(hooks_.cache_directory, error).available;
    // An unknown free space is no reason to refuse: a full disk then ends the conversion with its
    // own error.
    if (!error && source.converted_bytes() > room) {
      constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20U;
      throw UnusableData("--data_dir: " + hooks_.cache_directory.string() + " has " +
                         std::to_string(room / kMebibyte) + " MiB free, and " +
                         options_.path.string() + " becomes " +
                         std::to_string(source.converted_bytes() / kMebibyte) + " MiB of arrays");
    }
  }
  void take(const RowBlock& block, const SourceFile& file, HoldOut& hold_out, std::uint64_t row) {
    const std::vector<std::uint8_t> labels = labels_of(block, file);
    trained_.clear();
    trained_targets_.clear();
    const auto part_of = [&](std::size_t i) {
      // A drawn row leaves its file's part; all others stay in it. Only the training file draws.
      const Part drawn = hold_out.part_of(row + i);
      return drawn == Part::kTrain ? file.part.value_or(Part::kTrain) : drawn;
    };
    // Appends runs of rows of the same part, which is faster than single rows.
    for (std::size_t begin = 0, end = 0; begin < block.rows(); begin = end) {
      const Part part = part_of(begin);
      for (end = begin + 1; end < block.rows() && part_of(end) == part;) ++end;
      append(part, block, labels, begin, end);
      rows_[static_cast<std::size_t>(part)] += end - begin;
      if (!labels.empty()) {
        for (std::size_t i = begin; i < end; ++i) {
          is_there_.at(static_cast<std::size_t>(part)).set(labels[i]);
        }
      }
    }
    // The statistics follow the order of the rows and blocks, not the threads, so the checksum is
    // the same on every machine.
    if (!images_) {
      counters_->add(block.numbers);
      sums_->add(trained_);
      target_sums_->add(trained_targets_);
    }
  }
  // Appends the rows [begin, end) of a block.
  void append(Part part, const RowBlock& block, std::span<const std::uint8_t> labels,
              std::size_t begin, std::size_t end) {
    const auto rows_of = [begin, end](const auto& values, std::size_t each) {
      return std::span(values).subspan(begin * each, (end - begin) * each);
    };
    if (images_) {
      writer_.append(part, rows_of(block.pixels, images_->size()), rows_of(labels, 1));
      return;
    }
    const std::span<const float> numbers = rows_of(block.numbers, columns_.size());
    if (part == Part::kTrain) {
      trained_.insert(trained_.end(), numbers.begin(), numbers.end());
    }
    if (!options_.label_is_number) {
      writer_.append(part, numbers, rows_of(labels, 1));
      return;
    }
    const std::span<const float> targets = rows_of(block.targets, 1);
    writer_.append(part, numbers, targets);
    if (part == Part::kTrain) {
      trained_targets_.insert(trained_targets_.end(), targets.begin(), targets.end());
    }
  }
  // Returns the class index of each row; empty for numeric labels.
  std::vector<std::uint8_t> labels_of(const RowBlock& block, const SourceFile& file) {
    const std::vector<std::uint8_t> places =
        classes_.places_of(block.words, file.path, label_column_);
    // The words of a block are looked up once, and its rows refer to them by index.
    std::vector<std::uint8_t> labels(block.labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = places[block.labels[i]];
    }
    return labels;
  }
  void check_parts() const {
    for (const Part part : {Part::kTrain, Part::kValidation, Part::kTest}) {
      if (rows_[static_cast<std::size_t>(part)] == 0) {
        throw UnusableData("--data: " + options_.path.string() + " has " +
                           std::to_string(rows_[0] + rows_[1] + rows_[2]) +
                           " rows, of which none is for " + part_name(part) +
                           "; more rows, or larger shares in --hold_out, are needed");
      }
    }
  }
  // If no label of a file occurs in training, the file belongs to other data and every answer would
  // be wrong.
  void check_classes_of(Part part) const {
    if (std::ranges::find(files_, std::optional(part), &SourceFile::part) == files_.end()) return;
    const auto& there = is_there_.at(static_cast<std::size_t>(part));
    const auto& trained = is_there_.at(static_cast<std::size_t>(Part::kTrain));
    if (there.none() || (there & trained).any()) return;
    const auto some_of = [this](const std::bitset<kMostClasses>& set) {
      constexpr std::size_t kNamed = 5;
      std::string text;
      std::size_t named = 0;
      for (std::size_t i = 0; i < classes_.names().size(); ++i) {
        if (!set.test(i) || ++named > kNamed) continue;
        text += (text.empty() ? "\"" : ", \"") + printable(classes_.names()[i]) + "\"";
      }
      return text + (named > kNamed ? ", ..." : "");
    };
    throw UnusableData("--data: " + options_.path.string() + ": no label for " + part_name(part) +
                       " (" + some_of(there) + ") occurs among the training labels (" +
                       some_of(trained) + "); both need the same classes");
  }
  [[nodiscard]] std::uint64_t all_bytes() const {
    std::uint64_t sum = 0;
    for (const SourceFile& file : files_) sum += file.bytes;
    return sum;
  }

  const OwnDataOptions& options_;
  const OwnDataHooks& hooks_;
  const std::vector<SourceFile>& files_;
  CacheWriter writer_;
  Classes classes_;
  std::vector<std::string> columns_;
  std::optional<ImageShape> images_;
  std::string label_column_;
  bool has_names_ = false;
  std::vector<std::string> warnings_;                       // from the files
  std::array<std::bitset<kMostClasses>, kParts> is_there_;  // by part: the classes that occur
  // Statistics of the training rows, and of their labels if those are numbers.
  std::optional<ColumnSums> sums_;
  std::optional<ColumnSums> target_sums_;
  std::optional<RowCounters> counters_;  // over all rows
  std::vector<float> trained_;           // of the current block
  std::vector<float> trained_targets_;
  std::array<std::uint64_t, kParts> rows_{};
  std::uint64_t bytes_before_ = 0;  // bytes of the files before the current one
};

// Acquires the lock on the parent folder of all converted data. Returns without it if the file
// system has no locks, or if another task holds it longer than any conversion should take.
DirectoryLock locked(const OwnDataHooks& hooks) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kInterval{250};
  // Waits in short intervals, so that on_progress can end the wait.
  for (const auto began = Clock::now();;) {
    const auto asked = Clock::now();
    // One lock for the parent folder of all conversions: its own folder is replaced by rename() and
    // cannot carry the lock.
    DirectoryLock lock(hooks.cache_directory, kInterval);
    // A lock that is refused at once does not exist on this file system, so waiting would not help.
    const bool waited = Clock::now() - asked >= kInterval;
    if (lock.is_held() || !waited || Clock::now() - began >= kConversionPatience) {
      return lock;
    }
    if (hooks.on_progress) {
      hooks.on_progress(0, 0);
    }
  }
}

// Removes unfinished folders of killed converters. REQUIRES: no other conversion is running.
void remove_unfinished(const Path& directory) {
  const std::string beginning = directory.filename().string() + std::string(kTemporaryMark);
  std::error_code error;
  std::vector<Path> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory.parent_path(), error)) {
    if (entry.path().filename().string().starts_with(beginning)) found.push_back(entry.path());
  }
  // Collected first, because removing entries during the iteration may skip others. Errors are
  // ignored: leftovers only take space.
  for (const Path& path : found) std::filesystem::remove_all(path, error);
}

bool is_idx_folder(const Path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) && has_idx_files(path);
}

bool has_images(const std::vector<SourceFile>& files) {
  return std::ranges::any_of(files, &SourceFile::has_images);
}

// Refuses options that apply only to tables.
void refuse_table_options(const OwnDataOptions& options) {
  if (options.label_is_number || !options.label_column.empty() ||
      !options.ignored_columns.empty() || options.skipped_lines != 0) {
    throw UnusableData("--data: " + options.path.string() +
                       " has images, which have no columns, lines or labels that are numbers");
  }
}

}  // namespace

// Returns the first word of the result line, made of letters, digits and the signs that a
// configuration allows.
std::string own_data_name(const std::filesystem::path& path) {
  // "." is named after the folder it refers to.
  Path named = std::filesystem::absolute(path).lexically_normal();
  named = named.has_filename() ? named : named.parent_path();
  std::string name = named.stem().string().substr(0, kMostWordBytes);
  std::ranges::replace_if(
      name, [](unsigned char c) { return c <= ' ' || c > '~'; }, '_');
  return name.empty() ? "data" : name;
}

OwnData convert_own_data(const OwnDataOptions& options, const OwnDataHooks& hooks) {
  // Lists and checks the files without reading their rows, so a run that finds a conversion starts
  // at once.
  const std::vector<SourceFile> files = source_files(options, hooks.threads);
  if (has_images(files)) {
    refuse_table_options(options);
  }
  const std::string source = source_of(options, files);
  OwnData result{.directory = cache_of(options, hooks), .index = {}};
  const auto is_done = [&] {
    auto index = read_cache_index(result.directory);
    if (!index || index->source != source) return false;
    result.index = std::move(*index);
    say(hooks, "Using the converted form of", options.path, result.index.images,
        result.index.columns.size(), result.index.label_column);
    return true;
  };
  // The common case needs neither the lock nor a writable directory.
  if (is_done()) {
    return result;
  }
  PosixFileSystem file_system;
  create_directories(file_system, hooks.cache_directory);
  // Held until the function returns: the tasks of a machine would otherwise all convert the same
  // file.
  const DirectoryLock lock = locked(hooks);
  if (is_done()) {  // another task converted it during the wait for the lock
    return result;
  }
  // Without the lock another conversion may be using its unfinished folder.
  if (lock.is_held()) {
    remove_unfinished(result.directory);
  }
  // Without the lock two tasks may get here. Each writes a folder of its own, so neither reads the
  // other's unfinished files.
  result.index = Conversion(options, hooks, files, result.directory).run(source);
  return result;
}

OpenedOwnData open_own_data(const OwnDataOptions& options, const OwnDataHooks& hooks) {
  OpenedOwnData opened;
  if (is_idx_folder(options.path)) {
    refuse_table_options(options);
    opened.dataset = open_idx_folder(
        options.path, own_data_name(options.path),
        {{.validation = options.held_out.validation, .test = 0}, hooks.purpose, hooks.random_bits},
        hooks.on_block);
    opened.dataset.findings = findings_of(opened.dataset);
    return opened;
  }
  opened.converted = convert_own_data(options, hooks);
  const CacheIndex& index = opened.converted->index;
  opened.dataset = open_cache(opened.converted->directory, index, hooks.on_block);
  opened.dataset.findings = findings_of(index);
  if (index.images) {
    for (const std::string& finding : findings_of_pixels(opened.dataset)) {
      opened.dataset.findings.push_back(finding);
    }
  }
  return opened;
}

}  // namespace disttf::data
