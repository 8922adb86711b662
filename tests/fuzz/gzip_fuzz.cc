// The gzip reader: whatever the bytes, no more comes out than allowed, and nothing on an error.
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <vector>

#include "data/gzip.h"
#include "tests/fuzz/require.h"

using disttf::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using disttf::data::gunzip;
  constexpr std::size_t kMost = 200'000;  // more than the reader's first buffer
  std::vector<std::uint8_t> out;
  if (gunzip({data, size}, kMost, out)) {
    require(out.empty());
    return 0;
  }
  require(out.size() <= kMost);
  // The limit is exact: what came out fits its own size, and not one byte less.
  std::vector<std::uint8_t> again;
  require(!gunzip({data, size}, out.size(), again) && again == out);
  if (!out.empty()) require(static_cast<bool>(gunzip({data, size}, out.size() - 1, again)));
  return 0;
}
