// Files whose contents are known by SHA-256, and the stamps that save hashing them again:
// file_set.h says what a stamp is worth.
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
  kReady,   // there and right
  kAbsent,  // not there
  kWrong,   // there and not what it must be, or unreadable
};

struct FileCheck {
  FileState state = FileState::kAbsent;
  std::error_code error;  // none when ready
  std::string what;       // empty when ready; else names the file, and expected and actual

  // For people: `what` and the error's message.
  [[nodiscard]] std::string sentence() const { return what + ": " + error.message(); }
};

[[nodiscard]] FileCheck check_size(const std::filesystem::path& path, std::size_t expected,
                                   std::size_t found);
[[nodiscard]] FileCheck check_hash(const std::filesystem::path& path, std::string_view expected,
                                   const std::string& found);
[[nodiscard]] FileCheck check_hash(const std::filesystem::path& path, std::string_view expected,
                                   std::span<const std::uint8_t> bytes);
// Of a file that could not be read.
[[nodiscard]] FileCheck unreadable(const std::filesystem::path& path, std::error_code error);

// "NAME.verified"
[[nodiscard]] std::filesystem::path stamp_path(const std::filesystem::path& path);
// What the stamp of a file must say, to the letter, for the file to be the one that was found
// right. `by` says by what: "sha256 ba89...".
[[nodiscard]] std::string stamp_text(std::string_view by, const struct stat& status);
[[nodiscard]] bool stamp_fits(const std::filesystem::path& path,
                              const std::string& expected) noexcept;
// Whether somebody has written to the file since `stamp` was made of it.
[[nodiscard]] bool is_changed(const FileDescriptor& opened, std::string_view by,
                              const std::string& stamp);
// Throws std::system_error where the directory cannot be written.
void write_stamp(const std::filesystem::path& path, const std::string& text);
// Does without one there: the next start hashes again, nothing else.
void try_to_write_stamp(const std::filesystem::path& path, const std::string& text);

}  // namespace disttf::data
