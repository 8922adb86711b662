// The arrays of NumPy's .npz, a ZIP archive with one file per array, as byte streams of any size.
//
// Different objects may be used by different threads; one object is not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/zip.h"

namespace disttf::data {

// A sequential stream of bytes.
class ByteStream {
 public:
  ByteStream() = default;
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  // Fills `to` from the front and returns the number of bytes, fewer only at the end. Throws
  // UnusableData, and std::system_error if the source cannot be read.
  [[nodiscard]] virtual std::size_t read(std::span<std::uint8_t> to) = 0;
};

// Returns the members in the archive's order. Throws UnusableData if the file is not an archive, or
// has more than 1000 members.
[[nodiscard]] std::vector<ZipMember> zip_members(const std::filesystem::path& path);
// Opens one member, which is extracted as it is read; the end of the stream checks the CRC-32.
[[nodiscard]] std::unique_ptr<ByteStream> open_zip_member(const std::filesystem::path& path,
                                                          const std::string& name);
// Opens a file as a stream.
[[nodiscard]] std::unique_ptr<ByteStream> open_file_bytes(const std::filesystem::path& path);

}  // namespace disttf::data
