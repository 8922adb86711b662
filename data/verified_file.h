// Files with a known SHA-256, and the checksum markers that avoid hashing them again; file_set.h
// describes what a marker guarantees.
//
// Callable from any thread.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "data/file.h"

namespace disttf::data {

enum class FileState : std::uint8_t {
  kReady,   // present and right
  kAbsent,  // not present
  kWrong,   // present and wrong, or unreadable
};

struct FileCheck {
  FileState state = FileState::kAbsent;
  std::error_code error;  // none if ready
  std::string what;       // empty if ready; otherwise names the file, and expected and actual value

  // A message for the user: `what` and the error's message.
  [[nodiscard]] std::string sentence() const { return what + ": " + error.message(); }
};

[[nodiscard]] FileCheck check_size(const std::filesystem::path& path, std::size_t expected,
                                   std::size_t found);
[[nodiscard]] FileCheck check_hash(const std::filesystem::path& path, std::string_view expected,
                                   const std::string& found);
[[nodiscard]] FileCheck check_hash(const std::filesystem::path& path, std::string_view expected,
                                   std::span<const std::uint8_t> bytes);
// Returns the check of a file that could not be read.
[[nodiscard]] FileCheck unreadable(const std::filesystem::path& path, std::error_code error);

// Returns the path of the checksum marker: "NAME.verified".
[[nodiscard]] std::filesystem::path checksum_marker_path(const std::filesystem::path& path);
// Returns the exact contents that a file's marker must have for the file to be the verified one.
// `by` names the verification: "sha256 ba89...".
[[nodiscard]] std::string checksum_marker_text(std::string_view by, const struct stat& status);
[[nodiscard]] bool checksum_marker_fits(const std::filesystem::path& path,
                                        const std::string& expected) noexcept;
// Returns whether the file was written to after `checksum_marker` was made of it.
[[nodiscard]] bool is_changed(const FileDescriptor& opened, std::string_view by,
                              const std::string& checksum_marker);
// Writes the marker. Throws std::system_error if the directory is not writable.
void write_checksum_marker(const std::filesystem::path& path, const std::string& text);
// Writes the marker and ignores a failure, which only means that the next start hashes again.
void try_to_write_checksum_marker(const std::filesystem::path& path, const std::string& text);

}  // namespace disttf::data
