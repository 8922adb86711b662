// An archive that the files of a data set come in, known by its SHA-256: a zip file, or a tar that
// gzip has compressed.
//
// It is hashed once, 0.5 GB in about a second; its stamp saves that later. It is read in pieces
// and never held in memory.
// Callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "data/verified_file.h"

namespace disttf::data {

enum class ArchiveKind : std::uint8_t { kZip, kTarGz };

// The views are borrowed, of literals as a rule.
struct Archive {
  std::string_view name;  // of the file: "cifar-10-binary.tar.gz"
  ArchiveKind kind = ArchiveKind::kZip;
  std::size_t size_bytes = 0;
  std::string_view sha256;
};

// What is taken out of one.
struct ArchiveMember {
  std::string_view name;       // with folders; where it ends in .gz, it is decompressed as well
  std::size_t size_bytes = 0;  // of what comes out in the end; anything else is refused
};

// Whether `directory` holds the archive. Leaves a stamp where that can be written.
[[nodiscard]] FileCheck check_archive(const std::filesystem::path& directory,
                                      const Archive& archive);

// The contents of the members, in their order. Throws std::system_error with a sentence that names
// the archive: it is absent or wrong, was written to meanwhile, a member is missing or has another
// size.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> extract_members(
    const std::filesystem::path& directory, const Archive& archive,
    std::span<const ArchiveMember> members);

}  // namespace disttf::data
