// NumPy arrays and archives of them, created for tests.
#pragma once

#include <minizip/zip.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tests/data/scratch.h"

namespace disttf::data::test {

// Returns the output of numpy.save(); `shape` has the form "(3, 2)".
inline Bytes npy(std::string_view type, std::string_view shape,
                 std::span<const std::uint8_t> elements, std::uint8_t version = 1) {
  std::string dict = "{'descr': '" + std::string(type) +
                     "', 'fortran_order': False, 'shape': " + std::string(shape) + ", }";
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  while ((8 + length_bytes + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  for (std::size_t i = 0; i < length_bytes; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(dict.size() >> (8 * i)));
  }
  bytes.insert(bytes.end(), dict.begin(), dict.end());
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

// Writes the output of numpy.savez() or savez_compressed().
class NpzWriter {
 public:
  explicit NpzWriter(const std::filesystem::path& path)
      : zip_(zipOpen64(path.c_str(), APPEND_STATUS_CREATE)) {}
  ~NpzWriter() { zipClose(zip_, nullptr); }
  NpzWriter(const NpzWriter&) = delete;
  NpzWriter& operator=(const NpzWriter&) = delete;

  NpzWriter& add(const std::string& name, std::span<const std::uint8_t> bytes,
                 bool is_deflated = false) {
    zipOpenNewFileInZip64(zip_, name.c_str(), nullptr, nullptr, 0, nullptr, 0, nullptr,
                          is_deflated ? Z_DEFLATED : 0, 6, /*zip64=*/1);
    zipWriteInFileInZip(zip_, bytes.data(), static_cast<unsigned>(bytes.size()));
    zipCloseFileInZip(zip_);
    return *this;
  }

 private:
  zipFile zip_;
};

}  // namespace disttf::data::test
