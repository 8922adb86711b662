// The arrays of NumPy's .npz, which is a ZIP archive with a file each: as bytes that come one after
// the other, whatever their size.
//
// Not thread-safe, but for different objects.
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

// Bytes that come one after the other.
class ByteStream {
 public:
  ByteStream() = default;
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  // Fills `to` from the front; returns how many bytes those are, fewer at the end alone. Throws
  // UnusableData, and std::system_error where it cannot be read.
  [[nodiscard]] virtual std::size_t read(std::span<std::uint8_t> to) = 0;
};

// In the archive's order. Throws UnusableData where it is no archive, or has more than 1000 files.
[[nodiscard]] std::vector<ZipMember> zip_members(const std::filesystem::path& path);
// What is in one of them, extracted as it is read; at its end its CRC-32 is checked.
[[nodiscard]] std::unique_ptr<ByteStream> open_zip_member(const std::filesystem::path& path,
                                                          const std::string& name);
// Of a file, as it is.
[[nodiscard]] std::unique_ptr<ByteStream> open_file_bytes(const std::filesystem::path& path);

}  // namespace disttf::data
