// decode_header: an accepted header encodes to the same bytes again. The checksum would reject
// nearly every input, and a new version those of the corpus, so each input is tried a second time
// with both corrected.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "net/wire/codec.h"
#include "net/wire/frame.h"

namespace {

using disttf::net::FrameHeader;
using disttf::net::kHeaderBytes;
using Bytes = std::array<std::byte, kHeaderBytes>;

void check(const Bytes& bytes) {
  FrameHeader header;
  if (disttf::net::decode_header(bytes, header)) return;
  Bytes again{};
  disttf::net::encode_header(header, again);
  if (again != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  static_cast<void>(disttf::net::may_be_frame(input));
  if (size < kHeaderBytes) return 0;
  Bytes bytes{};
  std::copy_n(input.begin(), bytes.size(), bytes.begin());
  check(bytes);
  static constexpr std::size_t kVersionAt = 4;
  static constexpr std::size_t kChecksumAt = 60;
  bytes[kVersionAt] = std::byte{disttf::net::kWireVersion};
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), kChecksumAt);
  disttf::net::store_le(static_cast<std::uint32_t>(crc), std::span(bytes).subspan(kChecksumAt));
  check(bytes);
  return 0;
}
