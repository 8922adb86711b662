// Reads the members of a tar archive from a stream of pieces: POSIX ustar and the two older forms,
// GNU's and the original one, as far as files with names of up to 255 bytes need them.
//
//  header, 512 bytes       name, size, kind, and the sum of its bytes; numbers in octal
//   contents                padded to the next multiple of 512
//   ... more of these, then two blocks of zeros; anything after them is ignored
//
// Members that are not regular files (folders, links, extended headers with names and times) are
// skipped. Memory use follows the received contents, not the size that a header declares.
// One thread at a time may use an object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace disttf::data {

class TarReader {
 public:
  // Returns the vector to which a regular file's contents are appended; null skips the file. The
  // vector must live until the file has ended. The name includes folders: "folder/a.bin".
  using Begin =
      std::function<std::vector<std::uint8_t>*(std::string_view name, std::uint64_t size_bytes)>;

  explicit TarReader(Begin begin) : begin_(std::move(begin)) {}

  // Takes the next bytes of the archive. Do not call it again after an error.
  [[nodiscard]] std::error_code take(std::span<const std::uint8_t> bytes);
  // Returns kTarTruncated if the final blocks of zeros have not arrived.
  [[nodiscard]] std::error_code end() const noexcept;

 private:
  static constexpr std::size_t kBlockBytes = 512;
  using Block = std::array<std::uint8_t, kBlockBytes>;

  [[nodiscard]] std::error_code take_header();

  Begin begin_;
  Block header_{};
  std::size_t header_bytes_ = 0;  // received bytes of the header
  std::vector<std::uint8_t>* contents_ = nullptr;
  std::uint64_t contents_left_ = 0;  // missing bytes of the current member
  std::uint64_t padding_left_ = 0;   // missing padding after them
  bool has_ended_ = false;
};

}  // namespace disttf::data
