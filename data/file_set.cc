#include "data/file_set.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

#include "data/error.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "data/sha256.h"

namespace disttf::data {
namespace {

// Extracting takes well under a second; a holder that takes longer than this is stopped or on a
// disk so slow that doing the work twice does not matter any more.
constexpr std::chrono::seconds kLockPatience{10};
// A temporary file this old belongs to a writer that was killed.
constexpr std::chrono::minutes kAbandonedAge{10};

std::filesystem::path stamp_path(const std::filesystem::path& path) {
  return path.string() + ".verified";
}

std::string nanoseconds(const timespec& time) {
  return std::to_string(time.tv_sec) + "." + std::to_string(time.tv_nsec);
}

// What the stamp of a file must say, to the letter, for the file to be the one that was hashed.
// The status change time is what makes it hard to fool: no tool can set it back.
std::string stamp_text(const SetFile& file, const struct stat& status) {
  const std::string by = file.sha256.empty() ? "gz " + std::string(file.gz_sha256)
                                             : "sha256 " + std::string(file.sha256);
  return "disttf verified 1\n" + by + "\nsize " + std::to_string(status.st_size) + "\ninode " +
         std::to_string(status.st_ino) + "\nmodified " + nanoseconds(status.st_mtim) +
         "\nchanged " + nanoseconds(status.st_ctim) + "\n";
}

bool stamp_fits(const std::filesystem::path& path, const std::string& expected) noexcept {
  try {
    const std::vector<std::uint8_t> found = read_file(stamp_path(path), expected.size());
    return std::equal(found.begin(), found.end(), expected.begin(), expected.end());
  } catch (const std::exception&) {
    return false;  // absent or unreadable: the file is hashed, which needs no stamp
  }
}

// Whether somebody has written to the file since `stamp` was made of it.
bool is_changed(const FileDescriptor& opened, const SetFile& file, const std::string& stamp) {
  struct stat status {};
  return ::fstat(opened.number(), &status) != 0 || stamp_text(file, status) != stamp;
}

void write_stamp(const std::filesystem::path& path, const std::string& text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  write_file_atomically(stamp_path(path), bytes);
}

void try_to_write_stamp(const std::filesystem::path& path, const std::string& text) {
  try {
    write_stamp(path, text);
  } catch (const std::system_error&) {
    return;  // a directory that cannot be written: the next start hashes again, nothing else
  }
}

FileCheck check_size(const std::filesystem::path& path, std::size_t expected, std::size_t found) {
  if (expected == found) return {FileState::kReady, {}, {}};
  return {FileState::kWrong, DataError::kWrongSize,
          path.string() + ": expected " + std::to_string(expected) + " bytes, found " +
              std::to_string(found)};
}

FileCheck check_hash(const std::filesystem::path& path, std::string_view expected,
                     std::span<const std::uint8_t> bytes) {
  const std::string found = sha256_hex(std::as_bytes(bytes));
  if (found == expected) return {FileState::kReady, {}, {}};
  return {FileState::kWrong, DataError::kWrongChecksum,
          path.string() + ": expected SHA-256 " + std::string(expected) + ", found " + found};
}

FileCheck check_contents(const std::filesystem::path& path, const SetFile& file,
                         std::span<const std::uint8_t> bytes) {
  FileCheck check = check_size(path, file.size_bytes(), bytes.size());
  const bool is_pinned = !file.sha256.empty();
  if (check.state == FileState::kReady && is_pinned) check = check_hash(path, file.sha256, bytes);
  return check;
}

FileCheck unreadable(const std::filesystem::path& path, std::error_code error) {
  const bool absent = error == std::errc::no_such_file_or_directory;
  return {absent ? FileState::kAbsent : FileState::kWrong, error, "cannot read " + path.string()};
}

// `bytes` gets the .gz if it is right.
FileCheck read_gz(const std::filesystem::path& path, const SetFile& file,
                  std::vector<std::uint8_t>& bytes) {
  try {
    struct stat status {};
    const FileDescriptor opened = open_for_reading(path, status);
    const auto size_bytes = static_cast<std::size_t>(status.st_size);
    const bool is_other = file.other_gz_bytes != 0 && size_bytes == file.other_gz_bytes;
    FileCheck check = check_size(path, is_other ? file.other_gz_bytes : file.gz_bytes, size_bytes);
    if (check.state != FileState::kReady) return check;
    std::vector<std::uint8_t> read = read_open_file(opened, size_bytes, path);
    check = check_hash(path, is_other ? file.other_gz_sha256 : file.gz_sha256, read);
    if (check.state == FileState::kReady) bytes = std::move(read);
    return check;
  } catch (const std::system_error& error) {
    return unreadable(path, error.code());
  }
}

// Of a file that has the right size, where the .gz alone is pinned.
FileCheck not_verified(const std::filesystem::path& path) {
  return {FileState::kWrong, DataError::kNotVerified,
          path.string() + ": expected it beside the stamp of its extraction, " +
              stamp_path(path).filename().string()};
}

// Whether the file at `path` holds file's contents, which then are put into `out`, if there is one.
FileCheck check_extracted(const std::filesystem::path& path, const SetFile& file,
                          std::vector<std::uint8_t>* out) {
  try {
    struct stat status {};
    const FileDescriptor opened = open_for_reading(path, status);
    FileCheck check = check_size(path, file.size_bytes(), static_cast<std::size_t>(status.st_size));
    if (check.state != FileState::kReady) return check;
    const std::string stamp = stamp_text(file, status);
    const bool is_stamped = stamp_fits(path, stamp);
    const bool is_pinned = !file.sha256.empty();
    if (!is_stamped && !is_pinned) return not_verified(path);
    if (is_stamped && out == nullptr) return check;
    std::vector<std::uint8_t> contents = read_open_file(opened, file.size_bytes(), path);
    if (!is_stamped || is_changed(opened, file, stamp)) {
      if (!is_pinned) return not_verified(path);
      check = check_contents(path, file, contents);
      if (check.state != FileState::kReady) return check;
      if (!is_changed(opened, file, stamp)) try_to_write_stamp(path, stamp);
    }
    if (out != nullptr) *out = std::move(contents);
    return check;
  } catch (const std::system_error& error) {
    return unreadable(path, error.code());
  }
}

// Of two reasons why a file cannot be had: a wrong extracted file with no .gz beside it is not
// "absent".
const FileCheck& more_telling(const FileCheck& extracted, const FileCheck& gz) {
  const bool only_extracted =
      gz.state == FileState::kAbsent && extracted.state == FileState::kWrong;
  return only_extracted ? extracted : gz;
}

// What a split has of one file of `set`: a part of `bytes`; or bytes of its own, then `copied`.
std::error_code parse(const FileSet& set, const SetFile& file, std::span<const std::uint8_t> bytes,
                      std::span<const std::uint8_t>& elements, std::vector<std::uint8_t>& copied,
                      std::string& detail) {
  if (file.kind == FileKind::kImages) return parse_images(bytes, set.shape(), elements, detail);
  if (file.kind == FileKind::kLabels) return parse_labels(bytes, set.classes, elements, detail);
  const std::error_code error = parse_label_table(bytes, file.columns, set.classes, copied, detail);
  elements = copied;
  return error;
}

// SHA-256 over all files, where the set does not name it.
std::string identity_of(const FileSet& set,
                        const std::array<std::vector<std::uint8_t>, 4>& contents) {
  if (!set.checksum.empty()) return std::string(set.checksum);
  Sha256 identity;
  for (const std::vector<std::uint8_t>& bytes : contents) {
    identity.update(std::as_bytes(std::span(bytes)));
  }
  return identity.hex();
}

// The contents of `file` from its .gz. `extracted` is how its extracted file was found.
std::vector<std::uint8_t> extract(const std::filesystem::path& directory, const SetFile& file,
                                  const FileCheck& extracted, const OpenOptions& options) {
  std::filesystem::path gz = directory / file.gz_name();
  std::vector<std::uint8_t> compressed;
  FileCheck check = read_gz(gz, file, compressed);
  if (check.state != FileState::kReady && !options.gz_directory.empty()) {
    const std::filesystem::path other = options.gz_directory / file.gz_name();
    FileCheck other_check = read_gz(other, file, compressed);
    if (other_check.state == FileState::kReady) {
      check = std::move(other_check);
      gz = other;
    }
  }
  if (check.state != FileState::kReady) {
    const FileCheck& reason = more_telling(extracted, check);
    throw std::system_error(reason.error, reason.what);
  }
  if (options.on_extract) options.on_extract(gz);
  std::vector<std::uint8_t> contents;
  if (const std::error_code error = gunzip(compressed, file.size_bytes(), contents)) {
    throw std::system_error(error, gz.string());
  }
  return contents;
}

// Puts contents where they belong: on disk if possible, else in memory.
class Keeper {
 public:
  Keeper(const std::filesystem::path& directory, const OpenOptions& options)
      : directory_(directory), options_(options) {}

  // `found`: how the file of that name was found.
  std::vector<std::uint8_t> keep(const SetFile& file, const FileCheck& found,
                                 std::vector<std::uint8_t> contents) {
    const FileCheck check = check_contents(directory_ / file.name, file, contents);
    if (check.state != FileState::kReady) throw std::system_error(check.error, check.what);
    if (found.state == FileState::kWrong && !options_.replace_wrong) {
      warn(found.sentence() + "; it is left alone and not used");
      return contents;
    }
    if (!can_write_) return contents;
    try {
      write_verified(directory_, file, contents);
    } catch (const std::system_error& error) {
      can_write_ = false;
      warn(std::string(error.what()) + "; the data set is held in memory");
    }
    return contents;
  }

 private:
  void warn(const std::string& sentence) const {
    if (options_.on_warning) options_.on_warning(sentence);
  }

  const std::filesystem::path& directory_;
  const OpenOptions& options_;
  bool can_write_ = true;  // false once it has failed: one warning says it for all files
};

}  // namespace

std::size_t SetFile::size_bytes() const noexcept {
  switch (kind) {
    case FileKind::kImages:
      return images_header(rows, shape).size() + std::size_t{rows} * shape.size();
    case FileKind::kLabels:
      return labels_header(rows).size() + std::size_t{rows};
    case FileKind::kLabelTable:
      break;
  }
  return label_table_header(rows, columns).size() + std::size_t{rows} * columns * 4;
}

FileCheck check_gz(const std::filesystem::path& path, const SetFile& file) {
  std::vector<std::uint8_t> bytes;
  return read_gz(path, file, bytes);
}

FileCheck check_file(const std::filesystem::path& directory, const SetFile& file) {
  FileCheck extracted = check_extracted(directory / file.name, file, nullptr);
  if (extracted.state == FileState::kReady) return extracted;
  const FileCheck gz = check_gz(directory / file.gz_name(), file);
  return more_telling(extracted, gz);
}

bool provides(const std::filesystem::path& directory, const FileSet& set) {
  return std::ranges::all_of(set.files, [&](const SetFile& file) {
    return check_file(directory, file).state == FileState::kReady;
  });
}

FileCheck open_verified(const std::filesystem::path& directory, const SetFile& file,
                        std::vector<std::uint8_t>& out) {
  return check_extracted(directory / file.name, file, &out);
}

void write_verified(const std::filesystem::path& directory, const SetFile& file,
                    std::span<const std::uint8_t> contents) {
  assert(contents.size() == file.size_bytes());
  const std::filesystem::path path = directory / file.name;
  remove_abandoned_temporaries(path, kAbandonedAge);
  const struct stat status = write_file_atomically(path, contents);
  write_stamp(path, stamp_text(file, status));
}

Dataset assemble(const FileSet& set, std::array<std::vector<std::uint8_t>, 4> contents) {
  std::string checksum = identity_of(set, contents);
  std::array<std::span<const std::uint8_t>, 4> elements;
  for (std::size_t i = 0; i < set.files.size(); ++i) {
    const SetFile& file = set.files[i];
    std::string detail;
    std::vector<std::uint8_t> copied;
    if (const std::error_code error = parse(set, file, contents[i], elements[i], copied, detail)) {
      throw std::system_error(error, std::string(file.name) + ": " + detail);
    }
    if (contents[i].size() != file.size_bytes()) {
      throw std::system_error(DataError::kWrongSize,
                              check_size(file.name, file.size_bytes(), contents[i].size()).what);
    }
    // A vector that moves keeps its memory, and so what points into it.
    if (file.kind == FileKind::kLabelTable) contents[i] = std::move(copied);
  }
  auto storage =
      std::make_shared<const std::array<std::vector<std::uint8_t>, 4>>(std::move(contents));
  const auto& [train_images, train_labels, test_images, test_labels] = elements;
  const std::size_t held_out = set.validation_rows;
  const std::size_t held_out_bytes = held_out * set.shape().size();
  assert(held_out <= train_labels.size());
  return {.name = std::string(set.name),
          .checksum = std::move(checksum),
          .shape = set.shape(),
          .classes = set.classes,
          .class_names = set.class_names,
          .train = {.images = train_images.subspan(held_out_bytes),
                    .labels = train_labels.subspan(held_out)},
          .validation = {.images = train_images.first(held_out_bytes),
                         .labels = train_labels.first(held_out)},
          .test = {.images = test_images, .labels = test_labels},
          .storage = std::move(storage)};
}

Dataset open_file_set(const std::filesystem::path& directory, const FileSet& set,
                      const OpenOptions& options) {
  const auto make = [&](const SetFile& file, const FileCheck& found) {
    return extract(directory, file, found, options);
  };
  return open_file_set(directory, set, make, options);
}

Dataset open_file_set(const std::filesystem::path& directory, const FileSet& set,
                      const MakeContents& make, const OpenOptions& options) {
  std::array<std::vector<std::uint8_t>, 4> contents;
  std::array<FileCheck, 4> found;
  const auto open_again = [&](std::size_t i) {
    found[i] = open_verified(directory, set.files[i], contents[i]);
    return found[i].state == FileState::kReady;
  };
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < set.files.size(); ++i) {
    if (!open_again(i)) missing.push_back(i);
  }
  if (!missing.empty()) {
    const DirectoryLock lock(directory, kLockPatience);
    Keeper keeper(directory, options);
    for (const std::size_t i : missing) {
      // Another task may have written it while we waited for the lock.
      if (open_again(i)) continue;
      contents[i] = keeper.keep(set.files[i], found[i], make(set.files[i], found[i]));
    }
  }
  return assemble(set, std::move(contents));
}

}  // namespace disttf::data
