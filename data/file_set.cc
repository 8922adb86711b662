#include "data/file_set.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <map>
#include <system_error>
#include <utility>

#include "data/error.h"
#include "data/file.h"
#include "data/gzip.h"
#include "data/idx.h"

namespace disttf::data {
namespace {

// Extraction takes a second, about ten for the largest archive. A holder that takes longer than
// this is stopped, or its disk is so slow that duplicate work does not matter.
constexpr std::chrono::seconds kLockPatience{30};
// A temporary file of this age belongs to a killed writer.
constexpr std::chrono::minutes kAbandonedAge{10};

// Returns the verification that the file's checksum marker names.
std::string verified_by(const SetFile& file) {
  if (!file.sha256.empty()) return "sha256 " + std::string(file.sha256);
  if (file.archive != nullptr) {
    return "archive " + std::string(file.archive->sha256) + " " + std::string(file.member);
  }
  return "gz " + std::string(file.gz_sha256);
}

FileCheck check_contents(const std::filesystem::path& path, const SetFile& file,
                         std::span<const std::uint8_t> bytes) {
  FileCheck check = check_size(path, file.size_bytes(), bytes.size());
  const bool is_pinned = !file.sha256.empty();
  // The size first: a wrong size needs no hash.
  if (check.state == FileState::kReady && is_pinned) check = check_hash(path, file.sha256, bytes);
  return check;
}

// Reads the .gz into `bytes` if it is right.
FileCheck read_gz(const std::filesystem::path& path, const SetFile& file,
                  std::vector<std::uint8_t>& bytes) {
  try {
    struct stat status {};
    const FileDescriptor opened = open_for_reading(path, status);
    const auto size_bytes = static_cast<std::size_t>(status.st_size);
    // The size selects which of the two pinned checksums applies.
    const bool is_other = file.other_gz_bytes != 0 && size_bytes == file.other_gz_bytes;
    FileCheck check = check_size(path, is_other ? file.other_gz_bytes : file.gz_bytes, size_bytes);
    if (check.state != FileState::kReady) return check;
    std::vector<std::uint8_t> read = read_open_file(opened, size_bytes, path);
    check = check_hash(path, is_other ? file.other_gz_sha256 : file.gz_sha256, read);
    // The caller gets only bytes whose checksum is right.
    if (check.state == FileState::kReady) bytes = std::move(read);
    return check;
  } catch (const std::system_error& error) {
    return unreadable(path, error.code());
  }
}

// Returns the check of a file with the right size whose .gz or archive alone is pinned.
FileCheck not_verified(const std::filesystem::path& path) {
  return {FileState::kWrong, DataError::kNotVerified,
          path.string() + ": expected it with the checksum marker of its extraction, " +
              checksum_marker_path(path).filename().string()};
}

// Returns whether the file at `path` has the right contents; if so, moves them to `out` unless that
// is null.
FileCheck check_extracted(const std::filesystem::path& path, const SetFile& file,
                          std::vector<std::uint8_t>* out) {
  try {
    struct stat status {};
    const FileDescriptor opened = open_for_reading(path, status);
    FileCheck check = check_size(path, file.size_bytes(), static_cast<std::size_t>(status.st_size));
    if (check.state != FileState::kReady) return check;
    const std::string checksum_marker = checksum_marker_text(verified_by(file), status);
    // A marker verifies the file without reading it; a pinned checksum verifies it by hashing.
    const bool has_marker = checksum_marker_fits(path, checksum_marker);
    const bool is_pinned = !file.sha256.empty();
    if (!has_marker && !is_pinned) return not_verified(path);
    // The caller needs only the state, so the file is not read.
    if (has_marker && out == nullptr) return check;
    std::vector<std::uint8_t> contents = read_open_file(opened, file.size_bytes(), path);
    // The file may have been changed while it was read, so the marker is compared again.
    if (!has_marker || is_changed(opened, verified_by(file), checksum_marker)) {
      if (!is_pinned) return not_verified(path);
      check = check_contents(path, file, contents);
      if (check.state != FileState::kReady) return check;
      // No marker for contents that changed during the hash.
      if (!is_changed(opened, verified_by(file), checksum_marker))
        try_to_write_checksum_marker(path, checksum_marker);
    }
    // Moved out last, so the caller never sees contents that were not verified.
    if (out != nullptr) *out = std::move(contents);
    return check;
  } catch (const std::system_error& error) {
    return unreadable(path, error.code());
  }
}

// Selects the more useful of two errors: a wrong extracted file without a source to replace it must
// not be reported as absent.
const FileCheck& more_telling(const FileCheck& extracted, const FileCheck& packed) {
  const bool only_extracted =
      packed.state == FileState::kAbsent && extracted.state == FileState::kWrong;
  return only_extracted ? extracted : packed;
}

// Returns the contents of `file` from its .gz. `extracted` is the check of the extracted file.
std::vector<std::uint8_t> extract(const std::filesystem::path& directory, const SetFile& file,
                                  const FileCheck& extracted, const OpenOptions& options) {
  std::filesystem::path gz = directory / file.gz_name();
  std::vector<std::uint8_t> compressed;
  FileCheck check = read_gz(gz, file, compressed);
  // The package's file is used only if the directory has no right one.
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
  // The expected size is the limit, so a damaged or hostile file cannot fill the memory.
  if (const std::error_code error = gunzip(compressed, file.size_bytes(), contents)) {
    throw std::system_error(error, gz.string());
  }
  return contents;
}

// Returns the contents of all files of a set from their archive. `missing` is the file that caused
// this, `extracted` its check.
std::vector<std::vector<std::uint8_t>> unpack(const std::filesystem::path& directory,
                                              const FileSet& set, const SetFile& missing,
                                              const FileCheck& extracted,
                                              const OpenOptions& options) {
  const Archive& archive = *missing.archive;
  const std::filesystem::path path = directory / archive.name;
  std::error_code ignored;
  // The extracted file is wrong and there is no archive: reports the file, because that is what the
  // user can replace.
  if (extracted.state == FileState::kWrong && !std::filesystem::exists(path, ignored)) {
    throw std::system_error(extracted.error, extracted.what);
  }
  std::vector<ArchiveMember> members;
  // All files are extracted at once, because decompressing the archive again for each would take
  // much longer.
  for (const SetFile& file : set.files) {
    // A set has one archive, so the first missing file extracts the others as well.
    assert(file.archive == &archive);
    members.push_back({.name = file.member, .size_bytes = file.size_bytes()});
  }
  if (options.on_extract) options.on_extract(path);
  return extract_members(directory, archive, members);
}

// Stores contents on disk if possible, otherwise keeps them only in memory.
class Keeper {
 public:
  Keeper(const std::filesystem::path& directory, const OpenOptions& options)
      : directory_(directory), options_(options) {}

  // `found`: the check of the file that has that name now.
  std::vector<std::uint8_t> keep(const SetFile& file, const FileCheck& found,
                                 std::vector<std::uint8_t> contents) {
    // Contents from a generator or an archive are verified before they are used or stored.
    const FileCheck check = check_contents(directory_ / file.name, file, contents);
    if (check.state != FileState::kReady) throw std::system_error(check.error, check.what);
    // The wrong file stays on disk, as OpenOptions says; the right contents are used from memory.
    if (found.state == FileState::kWrong && !options_.replace_wrong) {
      warn(found.sentence() + "; it stays where it is and is not used");
      return contents;
    }
    if (!can_write_) return contents;
    try {
      write_verified(directory_, file, contents);
    } catch (const std::system_error& error) {
      // A read-only or full disk does not end a run whose data is complete in memory.
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
  bool can_write_ = true;  // false after the first failure, so only one warning appears
};

}  // namespace

std::size_t SetFile::size_bytes() const noexcept {
  switch (kind) {
    case FileKind::kImages:
      return images_header(rows, shape).size() + std::size_t{rows} * shape.size();
    case FileKind::kLabels:
      return labels_header(rows).size() + std::size_t{rows};
    case FileKind::kRecords:
      return std::size_t{rows} * (1 + shape.size());
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
  return check_files(directory, {.name = {}, .checksum = {}, .files = {&file, 1}}).front();
}

std::vector<FileCheck> check_files(const std::filesystem::path& directory, const FileSet& set) {
  std::map<const Archive*, FileCheck> archives;  // without markers each check hashes the archive
  const auto check_packed = [&](const SetFile& file) {
    if (file.archive == nullptr) return check_gz(directory / file.gz_name(), file);
    auto found = archives.find(file.archive);
    if (found == archives.end()) {
      found = archives.emplace(file.archive, check_archive(directory, *file.archive)).first;
    }
    return found->second;
  };
  std::vector<FileCheck> checks;
  for (const SetFile& file : set.files) {
    const FileCheck extracted = check_extracted(directory / file.name, file, nullptr);
    // The packed file matters only if the extracted one is not right.
    const bool is_ready = extracted.state == FileState::kReady;
    checks.push_back(is_ready ? extracted : more_telling(extracted, check_packed(file)));
  }
  return checks;
}

bool provides(const std::filesystem::path& directory, const FileSet& set) {
  const std::vector<FileCheck> checks = check_files(directory, set);
  return std::ranges::all_of(
      checks, [](const FileCheck& check) { return check.state == FileState::kReady; });
}

FileCheck open_verified(const std::filesystem::path& directory, const SetFile& file,
                        std::vector<std::uint8_t>& out) {
  return check_extracted(directory / file.name, file, &out);
}

void write_verified(const std::filesystem::path& directory, const SetFile& file,
                    std::span<const std::uint8_t> contents) {
  assert(contents.size() == file.size_bytes());
  const std::filesystem::path path = directory / file.name;
  std::error_code ignored;  // the write below reports the failure
  if (file.name.find('/') != std::string_view::npos) {
    std::filesystem::create_directory(path.parent_path(), ignored);
  }
  remove_abandoned_temporaries(path, kAbandonedAge);
  const struct stat status = write_file_atomically(path, contents);
  // The marker is written after the file, so a crash in between only causes another hash.
  write_checksum_marker(path, checksum_marker_text(verified_by(file), status));
}

Dataset open_file_set(const std::filesystem::path& directory, const FileSet& set,
                      const OpenOptions& options) {
  std::vector<std::vector<std::uint8_t>> unpacked;  // all files, once one is missing
  const auto make = [&](const SetFile& file, const FileCheck& found) {
    if (file.archive == nullptr) return extract(directory, file, found, options);
    // open_file_set() makes each missing file once, so its contents can be moved out of the list.
    if (unpacked.empty()) unpacked = unpack(directory, set, file, found, options);
    return std::move(unpacked[static_cast<std::size_t>(&file - set.files.data())]);
  };
  return open_file_set(directory, set, make, options);
}

Dataset open_file_set(const std::filesystem::path& directory, const FileSet& set,
                      const MakeContents& make, const OpenOptions& options) {
  std::vector<std::vector<std::uint8_t>> contents(set.files.size());
  std::vector<FileCheck> found(set.files.size());
  const auto open_again = [&](std::size_t i) {
    found[i] = open_verified(directory, set.files[i], contents[i]);
    return found[i].state == FileState::kReady;
  };
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < set.files.size(); ++i) {
    // The files are read first without the lock, because usually all of them are present.
    if (!open_again(i)) missing.push_back(i);
  }
  if (!missing.empty()) {
    // Tasks that start together on one machine would otherwise all extract the same files.
    const DirectoryLock lock(directory, kLockPatience);
    Keeper keeper(directory, options);
    for (const std::size_t i : missing) {
      // Another task may have written it during the wait for the lock.
      if (open_again(i)) continue;
      // Without the lock two tasks may both write this file: each writes the same bytes and renames
      // them.
      contents[i] = keeper.keep(set.files[i], found[i], make(set.files[i], found[i]));
    }
  }
  return assemble(set, std::move(contents));
}

}  // namespace disttf::data
