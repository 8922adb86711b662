// The gzip reader: for any bytes, the output does not exceed the limit, and is empty on an error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "data/gzip.h"
#include "tests/fuzz/input.h"

using disttf::fuzz::require;

namespace {

// Reads the same input in small pieces: the contents are the same, or it is an error as well.
void check_pieces(std::span<const std::uint8_t> bytes, const std::vector<std::uint8_t>* expected,
                  std::size_t most) {
  const std::size_t piece_bytes = bytes.empty() ? 1 : 1 + bytes.back() % 64U;
  std::vector<std::uint8_t> out;
  const std::error_code error = disttf::data::gunzip_pieces(
      [&] {
        const auto piece = bytes.first(std::min(piece_bytes, bytes.size()));
        bytes = bytes.subspan(piece.size());
        return piece;
      },
      [&](std::span<const std::uint8_t> piece) -> std::error_code {
        if (out.size() + piece.size() > most)
          return std::make_error_code(std::errc::file_too_large);
        out.insert(out.end(), piece.begin(), piece.end());
        return {};
      });
  require(expected != nullptr ? !error && out == *expected : static_cast<bool>(error));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using disttf::data::gunzip;
  constexpr std::size_t kMost = 200'000;  // larger than the reader's first buffer
  std::vector<std::uint8_t> out;
  if (gunzip({data, size}, kMost, out)) {
    require(out.empty());
    check_pieces({data, size}, nullptr, kMost);
    return 0;
  }
  require(out.size() <= kMost);
  check_pieces({data, size}, &out, kMost);
  // The limit is exact: the output fits its own size, and not one byte less.
  std::vector<std::uint8_t> again;
  require(!gunzip({data, size}, out.size(), again) && again == out);
  if (!out.empty()) require(static_cast<bool>(gunzip({data, size}, out.size() - 1, again)));
  return 0;
}
