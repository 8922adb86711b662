// Members of a zip file, of archives that may be larger than memory: through minizip, which reads
// the directory at the end and both ways of storing a member that are in use (as it is, deflated).
//
// No more is allocated than came out, however large the directory says that a member is. What does
// not fit its CRC-32 or the size that the directory gives is refused, so are encrypted members.
// Several members of one name: the first is meant.
// Callable from any thread, as far as the source is.
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

// The bytes of a zip file, wherever they are.
struct ZipSource {
  std::uint64_t size_bytes = 0;
  // Fills `out` from `offset` on, which is inside the file; false: cannot be read. Must not throw:
  // C code calls it.
  std::function<bool(std::uint64_t offset, std::span<std::uint8_t> out)> read;
};

// Bytes in memory, which must outlive what is returned.
[[nodiscard]] ZipSource zip_source(std::span<const std::uint8_t> bytes);
// An open file, which must stay open as long.
[[nodiscard]] ZipSource zip_source(int descriptor, std::uint64_t size_bytes);

struct ZipMember {
  std::string name;              // with folders: "gzip/a.gz"; of a folder with a slash at its end
  std::uint64_t size_bytes = 0;  // of the contents, as the directory has it
};

// In the order of the directory. On an error `out` is empty.
[[nodiscard]] std::error_code list_zip(const ZipSource& source, std::vector<ZipMember>& out);

// The contents of one member, piece by piece. Not thread-safe.
class ZipMemberReader {
 public:
  // A file that must stay open as long as this.
  explicit ZipMemberReader(ZipSource source);
  ~ZipMemberReader();
  ZipMemberReader(const ZipMemberReader&) = delete;
  ZipMemberReader& operator=(const ZipMemberReader&) = delete;

  // Before anything else, and once. DataError::kZipTooLarge: it has more than `max_bytes`.
  [[nodiscard]] std::error_code open(std::string_view name,
                                     std::uint64_t max_bytes = ~std::uint64_t{0});
  // Of the contents, as the directory has it: more never come.
  [[nodiscard]] std::uint64_t size_bytes() const noexcept;
  // Fills `out` from its front with what comes next; `count` is less than it holds at the end of
  // the contents alone. With the last byte the CRC-32 is compared. Throws std::bad_alloc only.
  [[nodiscard]] std::error_code read(std::span<std::uint8_t> out, std::size_t& count);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The contents of the member of that name; DataError::kZipTooLarge where they have more than
// `max_bytes`. On an error `out` is empty. Throws std::bad_alloc only.
[[nodiscard]] std::error_code read_zip_member(const ZipSource& source, std::string_view name,
                                              std::size_t max_bytes,
                                              std::vector<std::uint8_t>& out);

}  // namespace disttf::data
