// The messages of net/wire/messages.h and related headers: to_header() returns, field by field, the
// header that from_header() accepted; and no header is two messages.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "net/wire/codec.h"
#include "tests/net/all_messages.h"

namespace {

using disttf::net::FrameHeader;
using disttf::net::kHeaderBytes;

template <typename Message>
int check(const FrameHeader& header, Message message) {
  if (message.from_header(header)) return 0;
  FrameHeader again = message.to_header();
  again.body_size = header.body_size;
  if (again != header) std::abort();
  return 1;
}

}  // namespace

// The input is a header without its checksum and its version, which are corrected.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf::net;
  static constexpr std::size_t kVersionAt = 4;
  static constexpr std::size_t kChecksumAt = 60;
  if (size < kHeaderBytes) return 0;
  std::array<std::byte, kHeaderBytes> bytes{};
  std::copy_n(std::as_bytes(std::span(data, size)).begin(), bytes.size(), bytes.begin());
  bytes[kVersionAt] = std::byte{kWireVersion};
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), kChecksumAt);
  store_le(static_cast<std::uint32_t>(crc), std::span(bytes).subspan(kChecksumAt));
  FrameHeader header;
  if (decode_header(bytes, header)) return 0;
  int accepted = 0;
  AllMessages::for_each([&](auto message) { accepted += check(header, message); });
  // PUBLISH without a request_id is either of two.
  if (accepted > (header.kind == FrameKind::kPublish ? 2 : 1)) std::abort();
  return 0;
}
