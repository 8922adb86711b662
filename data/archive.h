// An archive that contains the files of a data set, identified by its SHA-256: a zip file or a
// gzip-compressed tar.
//
// The archive is hashed once (0.5 GB take about a second); a checksum marker saves later starts
// from hashing it again. It is read in pieces and never held in memory as a whole.
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

// The views are borrowed, usually from literals.
struct Archive {
  std::string_view name;  // file name: "cifar-10-binary.tar.gz"
  ArchiveKind kind = ArchiveKind::kZip;
  std::size_t size_bytes = 0;
  std::string_view sha256;
};

// A file to extract from an archive.
struct ArchiveMember {
  std::string_view name;       // with folders; a name that ends in .gz is also decompressed
  std::size_t size_bytes = 0;  // after decompression; any other size is refused
};

// Returns whether `directory` contains the archive with the right contents. Writes a checksum
// marker if the directory is writable.
[[nodiscard]] FileCheck check_archive(const std::filesystem::path& directory,
                                      const Archive& archive);

// Returns the contents of the members, in the order of `members`. Throws std::system_error with a
// sentence that names the archive if it is absent, wrong or was changed during the read, or if a
// member is missing or has another size.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> extract_members(
    const std::filesystem::path& directory, const Archive& archive,
    std::span<const ArchiveMember> members);

}  // namespace disttf::data
