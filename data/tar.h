// Members of a tar archive that comes in pieces, as it is decompressed: POSIX's ustar and the two
// older forms, GNU's and the one before, as far as files with names of up to 255 bytes go.
//
//   header, 512 bytes       name, size, kind, and the sum of its bytes; numbers in octal
//   contents                up to the next multiple of 512
//   ... more of these, then two blocks of zeros; what follows them does not matter
//
// What is no regular file (folders, links, further headers of names and times) is passed over.
// Memory grows with the contents that come, whatever size a header gives.
// One object belongs to one thread at a time.
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
  // Where the contents of a regular file go, behind what is there already; null: nowhere. What is
  // returned must live until the file has ended. The name is with folders: "folder/a.bin".
  using Begin =
      std::function<std::vector<std::uint8_t>*(std::string_view name, std::uint64_t size_bytes)>;

  explicit TarReader(Begin begin) : begin_(std::move(begin)) {}

  // The next bytes of the archive. After an error there is no going on.
  [[nodiscard]] std::error_code take(std::span<const std::uint8_t> bytes);
  // Whether the blocks of zeros have come: kTarTruncated where they have not.
  [[nodiscard]] std::error_code end() const noexcept;

 private:
  static constexpr std::size_t kBlockBytes = 512;
  using Block = std::array<std::uint8_t, kBlockBytes>;

  [[nodiscard]] std::error_code take_header();

  Begin begin_;
  Block header_{};
  std::size_t header_bytes_ = 0;  // of the header that has come so far
  std::vector<std::uint8_t>* contents_ = nullptr;
  std::uint64_t contents_left_ = 0;  // bytes of the member under way that have not come yet
  std::uint64_t padding_left_ = 0;   // behind them
  bool has_ended_ = false;
};

}  // namespace disttf::data
