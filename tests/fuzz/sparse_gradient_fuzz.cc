// decode_sparse: accepts any bytes for a range of any size; an accepted body encodes to the same
// bytes again. The first byte of the input is the size of the range; the lowest bit of the second
// byte selects bfloat16 values.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire/sparse_gradient.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto body = std::as_bytes(std::span(data, size)).subspan(2);
  const bool bf16 = data[1] % 2 != 0;
  std::vector<float> values(data[0]);
  if (disttf::net::decode_sparse(body, bf16, values)) return 0;
  std::vector<std::byte> again;
  disttf::net::encode_sparse(values, bf16, again);
  disttf::fuzz::require(std::ranges::equal(again, body));
  return 0;
}
