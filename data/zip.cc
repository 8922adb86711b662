#include "data/zip.h"

#include <minizip/unzip.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "data/error.h"
#include "data/little_endian.h"

namespace disttf::data {
namespace {

// The first allocation for a member; it doubles as contents arrive, because the declared size can
// be wrong.
constexpr std::size_t kFirstMemberBytes = std::size_t{64} << 10U;
// Members with a longer name are skipped; no caller looks for one.
constexpr std::size_t kMaxNameBytes = 1024;
// minizip counts in int, so larger reads are split.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;
constexpr unsigned kEncrypted = 1;  // flag of a member
constexpr unsigned kStored = 0;     // methods
constexpr unsigned kDeflated = 8;

// The state that minizip passes to the callbacks as an open file.
struct Stream {
  const ZipSource& source;
  std::uint64_t position = 0;
  bool came_short = false;  // a read went past the end
};

Stream& stream_of(voidpf stream) noexcept { return *static_cast<Stream*>(stream); }

// minizip passes `opaque` to this callback, which returns it as the stream.
voidpf open_stream(voidpf opaque, const void* /*name*/, int /*mode*/) { return opaque; }

uLong read_stream(voidpf /*opaque*/, voidpf file, void* out, uLong size) {
  Stream& stream = stream_of(file);
  // The position can lie at the end but not beyond it, see seek_stream(); the minimum guards the
  // subtraction.
  const std::uint64_t left =
      stream.source.size_bytes - std::min(stream.source.size_bytes, stream.position);
  const std::size_t count = std::min<std::uint64_t>(size, left);
  stream.came_short = stream.came_short || count < size;
  if (count == 0) return 0;
  if (!stream.source.read(stream.position, {static_cast<std::uint8_t*>(out), count})) {
    stream.came_short = true;
    return 0;
  }
  stream.position += count;
  return count;
}

uLong write_stream(voidpf /*opaque*/, voidpf /*file*/, const void* /*bytes*/, uLong /*size*/) {
  return 0;  // never called: the file is opened for reading
}

ZPOS64_T tell_stream(voidpf /*opaque*/, voidpf file) { return stream_of(file).position; }

// Accepts a position in the file or at its end; otherwise returns -1.
long seek_stream(voidpf /*opaque*/, voidpf file, ZPOS64_T offset, int origin) {
  Stream& stream = stream_of(file);
  std::uint64_t from = 0;
  if (origin == SEEK_CUR) from = stream.position;
  if (origin == SEEK_END) from = stream.source.size_bytes;
  // By subtraction, because the sum of two 64-bit numbers of a damaged file could overflow.
  if (offset > stream.source.size_bytes - from) return -1;
  stream.position = from + offset;
  return 0;
}

int close_stream(voidpf /*opaque*/, voidpf /*file*/) { return 0; }
// Without this callback minizip treats bytes after the end as zeros.
int stream_error(voidpf /*opaque*/, voidpf file) { return stream_of(file).came_short ? 1 : 0; }

struct CloseZip {
  void operator()(unzFile file) const noexcept { unzClose(file); }
};
using Unzip = std::unique_ptr<void, CloseZip>;

// Returns null if the source is not a zip file. REQUIRES: `stream` outlives the result.
Unzip open_zip(Stream& stream) {
  zlib_filefunc64_def functions{.zopen64_file = &open_stream,
                                .zread_file = &read_stream,
                                .zwrite_file = &write_stream,
                                .ztell64_file = &tell_stream,
                                .zseek64_file = &seek_stream,
                                .zclose_file = &close_stream,
                                .zerror_file = &stream_error,
                                .opaque = &stream};
  return Unzip(unzOpen2_64("", &functions));
}

// Reads the entry of the current member. Returns false if it cannot be read.
bool entry_of(const Unzip& file, unz_file_info64& info, std::string& name) {
  // minizip terminates the name with a zero only if there is room.
  std::array<char, kMaxNameBytes + 1> buffer{};
  if (unzGetCurrentFileInfo64(file.get(), &info, buffer.data(), kMaxNameBytes, nullptr, 0, nullptr,
                              0) != UNZ_OK) {
    return false;
  }
  name.assign(buffer.data(), std::min<std::size_t>(info.size_filename, kMaxNameBytes));
  return true;
}

// Calls `see` with each member until it returns false.
template <typename See>
std::error_code each_member(const Unzip& file, See see) {
  unz_global_info64 directory{};
  if (unzGetGlobalInfo64(file.get(), &directory) != UNZ_OK) return DataError::kZipCorrupt;
  if (directory.number_entry == 0) return {};
  int result = unzGoToFirstFile(file.get());
  while (result == UNZ_OK) {
    unz_file_info64 info{};
    std::string name;
    if (!entry_of(file, info, name)) return DataError::kZipCorrupt;
    if (info.size_filename <= kMaxNameBytes && !see(info, std::move(name))) return {};
    result = unzGoToNextFile(file.get());
  }
  return result == UNZ_END_OF_LIST_OF_FILE ? std::error_code{} : DataError::kZipCorrupt;
}

}  // namespace

ZipSource zip_source(std::span<const std::uint8_t> bytes) {
  return {.size_bytes = bytes.size(),
          .read = [bytes](std::uint64_t offset, std::span<std::uint8_t> out) {
            const auto part = bytes.subspan(offset, out.size());
            std::copy(part.begin(), part.end(), out.begin());
            return true;
          }};
}

ZipSource zip_source(int descriptor, std::uint64_t size_bytes) {
  return {.size_bytes = size_bytes,
          .read = [descriptor](std::uint64_t offset, std::span<std::uint8_t> out) {
            while (!out.empty()) {
              const ssize_t count =
                  ::pread(descriptor, out.data(), out.size(), static_cast<off_t>(offset));
              if (count < 0 && errno == EINTR) continue;
              if (count <= 0) return false;
              offset += static_cast<std::uint64_t>(count);
              out = out.subspan(static_cast<std::size_t>(count));
            }
            return true;
          }};
}

std::error_code list_zip(const ZipSource& source, std::vector<ZipMember>& out) {
  out.clear();
  Stream stream{.source = source};
  const Unzip file = open_zip(stream);
  if (!file) return DataError::kNotZip;
  const std::error_code error =
      each_member(file, [&](const unz_file_info64& info, std::string name) {
        out.push_back({.name = std::move(name), .size_bytes = info.uncompressed_size});
        return true;
      });
  if (error) out.clear();
  return error;
}

struct ZipMemberReader::Impl {
  // The order of the members matters: `stream` refers to `source`, and `file` to `stream`.
  explicit Impl(ZipSource from) : source(std::move(from)), file(open_zip(stream)) {}

  const ZipSource source;
  Stream stream{.source = source};
  Unzip file;                    // null: not a zip file
  std::uint64_t size_bytes = 0;  // of the member
  std::uint64_t left = 0;
};

ZipMemberReader::ZipMemberReader(ZipSource source)
    : impl_(std::make_unique<Impl>(std::move(source))) {}
ZipMemberReader::~ZipMemberReader() = default;

std::error_code ZipMemberReader::open(std::string_view name, std::uint64_t max_bytes) {
  Impl& zip = *impl_;
  if (!zip.file) return DataError::kNotZip;
  std::error_code result = DataError::kZipNoMember;
  const std::error_code error =
      each_member(zip.file, [&](const unz_file_info64& info, const std::string& found) {
        if (found != name) return true;
        if ((info.flag & kEncrypted) != 0 ||
            (info.compression_method != kStored && info.compression_method != kDeflated)) {
          result = DataError::kZipBadMethod;
        } else if (info.uncompressed_size > max_bytes) {
          // A declared size; the reader below also stops at it, whatever the compressed bytes
          // contain.
          result = DataError::kZipTooLarge;
        } else if (unzOpenCurrentFile(zip.file.get()) != UNZ_OK) {
          result = DataError::kZipCorrupt;
        } else {
          result.clear();
          zip.size_bytes = zip.left = info.uncompressed_size;
        }
        return false;
      });
  return error ? error : result;
}

std::uint64_t ZipMemberReader::size_bytes() const noexcept { return impl_->size_bytes; }

// minizip compares the CRC-32 when the member is closed, if it was read completely.
std::error_code ZipMemberReader::read(std::span<std::uint8_t> out, std::size_t& count) {
  Impl& zip = *impl_;
  count = 0;
  if (zip.size_bytes == 0) return {};
  while (count < out.size() && zip.left > 0) {
    const std::size_t wanted =
        std::min({out.size() - count, kMostAtOnce, static_cast<std::size_t>(zip.left)});
    const int got =
        unzReadCurrentFile(zip.file.get(), out.data() + count, static_cast<unsigned>(wanted));
    // 0 is an end before the declared size.
    if (got <= 0) return DataError::kZipCorrupt;
    count += static_cast<std::size_t>(got);
    zip.left -= static_cast<std::uint64_t>(got);
    if (zip.left == 0 && unzCloseCurrentFile(zip.file.get()) != UNZ_OK) {
      return DataError::kZipCorrupt;
    }
  }
  return {};
}

std::error_code read_zip_member(const ZipSource& source, std::string_view name,
                                std::size_t max_bytes, std::vector<std::uint8_t>& out) {
  out.clear();
  ZipMemberReader reader(source);
  if (const std::error_code error = reader.open(name, max_bytes)) return error;
  std::size_t written = 0;
  while (written < reader.size_bytes()) {
    out.resize(std::min(static_cast<std::size_t>(reader.size_bytes()),
                        std::max(kFirstMemberBytes, 2 * out.size())));
    std::size_t count = 0;
    if (const std::error_code error = reader.read(std::span(out).subspan(written), count)) {
      out.clear();
      return error;
    }
    written += count;
  }
  return {};
}

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
