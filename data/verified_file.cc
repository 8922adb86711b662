#include "data/verified_file.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "data/checksums.h"
#include "data/error.h"

namespace disttf::data {
namespace {

std::string nanoseconds(const timespec& time) {
  return std::to_string(time.tv_sec) + "." + std::to_string(time.tv_nsec);
}

}  // namespace

FileCheck check_size(const std::filesystem::path& path, std::size_t expected, std::size_t found) {
  if (expected == found) return {FileState::kReady, {}, {}};
  return {FileState::kWrong, DataError::kWrongSize,
          path.string() + ": expected " + std::to_string(expected) + " bytes, found " +
              std::to_string(found)};
}

FileCheck check_hash(const std::filesystem::path& path, std::string_view expected,
                     const std::string& found) {
  if (found == expected) return {FileState::kReady, {}, {}};
  return {FileState::kWrong, DataError::kWrongChecksum,
          path.string() + ": expected SHA-256 " + std::string(expected) + ", found " + found};
}

FileCheck check_hash(const std::filesystem::path& path, std::string_view expected,
                     std::span<const std::uint8_t> bytes) {
  return check_hash(path, expected, sha256_hex(std::as_bytes(bytes)));
}

FileCheck unreadable(const std::filesystem::path& path, std::error_code error) {
  // Any other error counts as a wrong file, because something has that name.
  const bool absent = error == std::errc::no_such_file_or_directory;
  return {absent ? FileState::kAbsent : FileState::kWrong, error, "cannot read " + path.string()};
}

std::filesystem::path checksum_marker_path(const std::filesystem::path& path) {
  return path.string() + ".verified";
}

// The status change time makes a marker hard to forge: no system call can set it.
std::string checksum_marker_text(std::string_view by, const struct stat& status) {
  return "disttf verified 1\n" + std::string(by) + "\nsize " + std::to_string(status.st_size) +
         "\ninode " + std::to_string(status.st_ino) + "\nmodified " + nanoseconds(status.st_mtim) +
         "\nchanged " + nanoseconds(status.st_ctim) + "\n";
}

bool checksum_marker_fits(const std::filesystem::path& path, const std::string& expected) noexcept {
  try {
    // A longer marker cannot fit and is refused without being read.
    const std::vector<std::uint8_t> found = read_file(checksum_marker_path(path), expected.size());
    return std::equal(found.begin(), found.end(), expected.begin(), expected.end());
  } catch (const std::exception&) {
    return false;  // absent or unreadable: the file is hashed instead
  }
}

bool is_changed(const FileDescriptor& opened, std::string_view by,
                const std::string& checksum_marker) {
  struct stat status {};
  // The same text as in the marker: every property that a marker pins is compared.
  return ::fstat(opened.number(), &status) != 0 ||
         checksum_marker_text(by, status) != checksum_marker;
}

void write_checksum_marker(const std::filesystem::path& path, const std::string& text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  write_file_atomically(checksum_marker_path(path), bytes);
}

void try_to_write_checksum_marker(const std::filesystem::path& path, const std::string& text) {
  try {
    write_checksum_marker(path, text);
  } catch (const std::system_error&) {
    // A marker only saves time, so a read-only folder is no error.
    return;
  }
}

}  // namespace disttf::data
