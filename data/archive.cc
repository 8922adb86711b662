#include "data/archive.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "data/checksums.h"
#include "data/error.h"
#include "data/file.h"
#include "data/gzip.h"
#include "data/tar.h"
#include "data/zip.h"

namespace disttf::data {
namespace {

using MemberContents = std::vector<std::vector<std::uint8_t>>;

// Pieces of this size bound the memory for an archive of any size.
constexpr std::size_t kReadBytes = std::size_t{1} << 20U;

std::string archive_marker_by(const Archive& archive) {
  return "sha256 " + std::string(archive.sha256);
}

// Reads an open file from its beginning.
class PieceReader {
 public:
  PieceReader(const FileDescriptor& file, const std::filesystem::path& path)
      : file_(file), path_(path), buffer_(kReadBytes) {}

  // Returns the next bytes, valid until the next call; empty at the end. Throws std::system_error.
  std::span<const std::uint8_t> next() {
    while (true) {
      // pread() with an own offset: hash and extraction both begin at 0 on the same descriptor.
      const ssize_t count =
          ::pread(file_.number(), buffer_.data(), buffer_.size(), static_cast<off_t>(offset_));
      if (count >= 0) {
        offset_ += static_cast<std::uint64_t>(count);
        return std::span(buffer_).first(static_cast<std::size_t>(count));
      }
      if (errno != EINTR) {
        throw std::system_error(errno, std::generic_category(), "cannot read " + path_.string());
      }
    }
  }

 private:
  const FileDescriptor& file_;
  const std::filesystem::path& path_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t offset_ = 0;
};

std::string hash_of(const FileDescriptor& file, const std::filesystem::path& path) {
  PieceReader reader(file, path);
  Sha256 hash;
  for (auto piece = reader.next(); !piece.empty(); piece = reader.next()) {
    hash.update(std::as_bytes(piece));
  }
  return hash.hex();
}

// An archive whose hash was right, and the text of its checksum marker.
struct OpenArchive {
  FileDescriptor file;
  std::string checksum_marker;
};

FileCheck open_archive(const std::filesystem::path& path, const Archive& archive,
                       OpenArchive& out) {
  try {
    struct stat status {};
    out.file = open_for_reading(path, status);
    FileCheck check =
        check_size(path, archive.size_bytes, static_cast<std::size_t>(status.st_size));
    if (check.state != FileState::kReady) return check;
    out.checksum_marker = checksum_marker_text(archive_marker_by(archive), status);
    // A fitting marker saves the hash of up to half a gigabyte.
    if (checksum_marker_fits(path, out.checksum_marker)) return check;
    check = check_hash(path, archive.sha256, hash_of(out.file, path));
    const bool is_right = check.state == FileState::kReady;
    // No marker for an archive that changed during the hash.
    if (is_right && !is_changed(out.file, archive_marker_by(archive), out.checksum_marker)) {
      try_to_write_checksum_marker(path, out.checksum_marker);
    }
    return check;
  } catch (const std::system_error& error) {
    return unreadable(path, error.code());
  }
}

[[noreturn]] void fail_member(std::error_code error, const std::filesystem::path& path,
                              std::string_view member) {
  throw std::system_error(error, path.string() + ", member " + std::string(member));
}

void expect_size(const ArchiveMember& member, std::size_t found,
                 const std::filesystem::path& path) {
  if (found == member.size_bytes) return;
  fail_member(DataError::kWrongSize, path,
              std::string(member.name) + ": expected " + std::to_string(member.size_bytes) +
                  " bytes, found " + std::to_string(found));
}

bool is_gz(const ArchiveMember& member) { return member.name.ends_with(".gz"); }

// Returns the largest size that the member can have in the archive. Incompressible data grows by a
// few bytes per 16 KiB in a .gz.
std::size_t most_bytes(const ArchiveMember& member) {
  constexpr std::size_t kHeaderBytes = 4096;  // may contain the file's name
  return is_gz(member) ? member.size_bytes + member.size_bytes / 1000 + kHeaderBytes
                       : member.size_bytes;
}

std::vector<std::uint8_t> decompressed(const ArchiveMember& member, std::vector<std::uint8_t> bytes,
                                       const std::filesystem::path& path) {
  if (is_gz(member)) {
    std::vector<std::uint8_t> contents;
    if (const std::error_code error = gunzip(bytes, member.size_bytes, contents)) {
      fail_member(error, path, member.name);
    }
    bytes = std::move(contents);
  }
  expect_size(member, bytes.size(), path);
  return bytes;
}

MemberContents unzip(const OpenArchive& archive, std::size_t size_bytes,
                     std::span<const ArchiveMember> members, const std::filesystem::path& path) {
  const ZipSource source = zip_source(archive.file.number(), size_bytes);
  MemberContents contents;
  for (const ArchiveMember& member : members) {
    std::vector<std::uint8_t> bytes;
    // One member at a time, in the caller's order: a ZIP archive has a directory.
    if (const auto error = read_zip_member(source, member.name, most_bytes(member), bytes)) {
      fail_member(error, path, member.name);
    }
    contents.push_back(decompressed(member, std::move(bytes), path));
  }
  return contents;
}

MemberContents untar(const OpenArchive& archive, std::span<const ArchiveMember> members,
                     const std::filesystem::path& path) {
  MemberContents contents(members.size());
  std::vector<bool> is_there(members.size());
  // A tar archive has no directory, so one pass over it collects all members.
  TarReader tar([&](std::string_view name, std::uint64_t size_bytes) {
    const auto found = std::ranges::find(members, name, &ArchiveMember::name);
    if (found == members.end()) return static_cast<std::vector<std::uint8_t>*>(nullptr);
    const auto i = static_cast<std::size_t>(found - members.begin());
    if (!is_gz(*found)) expect_size(*found, size_bytes, path);
    // Before the reserve() below, which would otherwise allocate what a damaged header declares.
    if (size_bytes > most_bytes(*found)) fail_member(DataError::kWrongSize, path, name);
    is_there[i] = true;
    // A later member of the same name replaces the earlier one, as tar does.
    contents[i].clear();
    contents[i].reserve(size_bytes);
    return &contents[i];
  });
  PieceReader reader(archive.file, path);
  std::error_code error =
      gunzip_pieces([&] { return reader.next(); },
                    [&](std::span<const std::uint8_t> piece) { return tar.take(piece); });
  if (!error) error = tar.end();
  if (error) throw std::system_error(error, path.string());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!is_there[i]) fail_member(DataError::kTarNoMember, path, members[i].name);
    contents[i] = decompressed(members[i], std::move(contents[i]), path);
  }
  return contents;
}

}  // namespace

FileCheck check_archive(const std::filesystem::path& directory, const Archive& archive) {
  OpenArchive opened;
  return open_archive(directory / archive.name, archive, opened);
}

std::vector<std::vector<std::uint8_t>> extract_members(const std::filesystem::path& directory,
                                                       const Archive& archive,
                                                       std::span<const ArchiveMember> members) {
  const std::filesystem::path path = directory / archive.name;
  OpenArchive opened;
  const FileCheck check = open_archive(path, archive, opened);
  if (check.state != FileState::kReady) throw std::system_error(check.error, check.what);
  MemberContents contents = archive.kind == ArchiveKind::kZip
                                ? unzip(opened, archive.size_bytes, members, path)
                                : untar(opened, members, path);
  // A write between the hash and the last read byte would leave contents that nothing verified.
  if (is_changed(opened.file, archive_marker_by(archive), opened.checksum_marker)) {
    throw std::system_error(DataError::kWrongChecksum,
                            path.string() + ": it was changed during the read");
  }
  return contents;
}

}  // namespace disttf::data
