// Zip files, read and written.
//
// Reads members of a zip file, which may be larger than memory. Uses minizip, which reads the
// directory at the end and both common storage methods (stored, deflated).
//
// Allocations follow the extracted bytes, not the size that the directory declares. A member with a
// wrong CRC-32 or size is refused, and so are encrypted members. If several members have the same
// name, the first is used.
// Callable from any thread if the source is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace disttf::data {

// The bytes of a zip file, from any source.
struct ZipSource {
  std::uint64_t size_bytes = 0;
  // Fills `out` from `offset`, which is inside the file; returns false if that fails. Must not
  // throw, because C code calls it.
  std::function<bool(std::uint64_t offset, std::span<std::uint8_t> out)> read;
};

// A source of bytes in memory, which must outlive the result.
[[nodiscard]] ZipSource zip_source(std::span<const std::uint8_t> bytes);
// A source of an open file, which must stay open as long.
[[nodiscard]] ZipSource zip_source(int descriptor, std::uint64_t size_bytes);

struct ZipMember {
  std::string name;              // with folders: "gzip/a.gz"; a folder's name ends in a slash
  std::uint64_t size_bytes = 0;  // of the contents, according to the directory
};

// Lists the members in directory order. On error `out` is empty.
[[nodiscard]] std::error_code list_zip(const ZipSource& source, std::vector<ZipMember>& out);

// Reads the contents of one member, piece by piece. Not thread-safe.
class ZipMemberReader {
 public:
  // The source must stay usable as long as this object.
  explicit ZipMemberReader(ZipSource source);
  ~ZipMemberReader();
  ZipMemberReader(const ZipMemberReader&) = delete;
  ZipMemberReader& operator=(const ZipMemberReader&) = delete;

  // Opens the member; call it first, and once. Returns DataError::kZipTooLarge if it has more than
  // `max_bytes`.
  [[nodiscard]] std::error_code open(std::string_view name,
                                     std::uint64_t max_bytes = ~std::uint64_t{0});
  // Returns the size of the contents according to the directory; read() never returns more.
  [[nodiscard]] std::uint64_t size_bytes() const noexcept;
  // Fills `out` from the front with the next bytes; `count` is less than out.size() only at the end
  // of the contents. The last byte triggers the CRC-32 check. Throws only std::bad_alloc.
  [[nodiscard]] std::error_code read(std::span<std::uint8_t> out, std::size_t& count);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Extracts the contents of the named member; returns DataError::kZipTooLarge if they exceed
// `max_bytes`. On error `out` is empty. Throws only std::bad_alloc.
[[nodiscard]] std::error_code read_zip_member(const ZipSource& source, std::string_view name,
                                              std::size_t max_bytes,
                                              std::vector<std::uint8_t>& out);

// Writes a zip file with uncompressed members, as NumPy's .npz needs.
//
// A pure function; callable from any thread.
struct StoredMember {
  std::string name;
  std::vector<std::span<const std::uint8_t>> parts;  // the contents, one part after the other
};

// The limit for all members together, with their headers: offsets and sizes have 32 bits.
inline constexpr std::uint64_t kMostStoredBytes = 0xFFFFFFFFU;

// REQUIRES: fewer than 65535 members, names below 64 KiB, all together at most kMostStoredBytes.
[[nodiscard]] std::string stored_zip(std::span<const StoredMember> members);

}  // namespace disttf::data
