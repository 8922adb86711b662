#include "data/zip_writer.h"

#include <zlib.h>

#include <string_view>

#include "data/little_endian.h"

namespace disttf::data {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kDirectoryEnd = 0x06054b50;
constexpr std::uint16_t kVersionOfStored = 20;  // 2.0 of the format
// 1 January 1980, the first date of the format. A constant date makes equal models give equal
// files.
constexpr std::uint16_t kFirstDay = 1U << 5U | 1U;

struct Sizes {
  std::uint32_t crc = 0;
  std::uint32_t bytes = 0;
  std::uint32_t offset = 0;  // of the local header
};

// Appends the fields that the local header and the directory entry share, from the version on.
void append_common(std::string& to, const Sizes& sizes, const std::string& name) {
  append_little_endian(to, kVersionOfStored);
  append_little_endian(to, std::uint16_t{0});  // flags
  append_little_endian(to, std::uint16_t{0});  // method: stored
  append_little_endian(to, std::uint16_t{0});  // midnight
  append_little_endian(to, kFirstDay);
  append_little_endian(to, sizes.crc);
  append_little_endian(to, sizes.bytes);
  append_little_endian(to, sizes.bytes);
  append_little_endian(to, static_cast<std::uint16_t>(name.size()));
  append_little_endian(to, std::uint16_t{0});  // extra field
}

Sizes measure(const StoredMember& member, std::size_t offset) {
  Sizes sizes{.offset = static_cast<std::uint32_t>(offset)};
  for (const auto& part : member.parts) {
    sizes.crc = static_cast<std::uint32_t>(::crc32_z(sizes.crc, part.data(), part.size()));
    sizes.bytes += static_cast<std::uint32_t>(part.size());
  }
  return sizes;
}

}  // namespace

std::string stored_zip(std::span<const StoredMember> members) {
  std::string file;
  std::string directory;
  for (const StoredMember& member : members) {
    // The checksum precedes the contents in the format, so the parts are read twice.
    const Sizes sizes = measure(member, file.size());
    append_little_endian(file, kLocalHeader);
    append_common(file, sizes, member.name);
    file += member.name;
    for (const auto& part : member.parts) {
      file.append(reinterpret_cast<const char*>(part.data()), part.size());
    }
    append_little_endian(directory, kDirectoryEntry);
    append_little_endian(directory, kVersionOfStored);  // made by
    append_common(directory, sizes, member.name);
    append_little_endian(directory, std::uint16_t{0});  // comment
    append_little_endian(directory, std::uint16_t{0});  // disk
    append_little_endian(directory, std::uint16_t{0});  // internal attributes
    append_little_endian(directory, std::uint32_t{0});  // external attributes
    append_little_endian(directory, sizes.offset);
    directory += member.name;
  }
  const std::size_t begin = file.size();
  file += directory;
  append_little_endian(file, kDirectoryEnd);
  append_little_endian(file, std::uint32_t{0});  // disks
  append_little_endian(file, static_cast<std::uint16_t>(members.size()));
  append_little_endian(file, static_cast<std::uint16_t>(members.size()));
  append_little_endian(file, static_cast<std::uint32_t>(directory.size()));
  append_little_endian(file, static_cast<std::uint32_t>(begin));
  append_little_endian(file, std::uint16_t{0});  // comment
  return file;
}

}  // namespace disttf::data
