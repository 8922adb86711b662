#include "net/wire/frame.h"

#include <algorithm>
#include <array>
#include <string>

#include "net/wire/codec.h"
#include "net/wire/crc32.h"

namespace disttf::net {
namespace {

constexpr std::array<std::byte, 4> kMagic{std::byte{'D'}, std::byte{'T'}, std::byte{'F'},
                                          std::byte{'1'}};
// Offsets of the header's fields.
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kKindAt = 5;
constexpr std::size_t kFlagsAt = 6;
constexpr std::size_t kRequestIdAt = 8;
constexpr std::size_t kBodySizeAt = 16;
constexpr std::size_t kStepAt = 24;
constexpr std::size_t kSequenceAt = 32;
constexpr std::size_t kRangeBeginAt = 40;
constexpr std::size_t kGenerationAt = 48;
constexpr std::size_t kBodyOffsetAt = 56;
constexpr std::size_t kChecksumAt = 60;

class WireCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "disttf.wire"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<WireError>(code)) {
      case WireError::kBadMagic:
        return "not a disttf frame";
      case WireError::kBadVersion:
        return "unknown wire version";
      case WireError::kBadChecksum:
        return "the frame header's checksum does not match";
      case WireError::kBadKind:
        return "unknown kind of frame";
      case WireError::kBadFlags:
        return "unknown flags in the frame header";
      case WireError::kBadReserved:
        return "reserved bytes of the frame header are not zero";
      case WireError::kBodyTooLarge:
        return "the frame's body is larger than allowed here";
      case WireError::kBadBody:
        return "the frame's body cannot be decoded";
      case WireError::kUnexpected:
        return "a kind of frame that is invalid at this point";
      case WireError::kRefused:
        return "refused by the peer";
    }
    return "unknown wire error " + std::to_string(code);
  }
};

[[nodiscard]] std::uint32_t checksum(std::span<const std::byte, kHeaderBytes> bytes) noexcept {
  return crc32(bytes.first<kChecksumAt>());
}

[[nodiscard]] bool is_known(std::uint8_t kind) noexcept {
  // The kinds are numbered without gaps.
  return kind >= static_cast<std::uint8_t>(FrameKind::kHello) &&
         kind <= static_cast<std::uint8_t>(FrameKind::kPeerDiscovery);
}

}  // namespace

const std::error_category& wire_category() noexcept {
  static const WireCategory category;
  return category;
}

std::error_code make_error_code(WireError error) noexcept {
  return {static_cast<int>(error), wire_category()};
}

bool may_be_frame(std::span<const std::byte> prefix) noexcept {
  // Compares only the bytes that have arrived.
  const std::size_t known = std::min(prefix.size(), kMagic.size());
  return std::equal(kMagic.begin(), kMagic.begin() + static_cast<std::ptrdiff_t>(known),
                    prefix.begin());
}

std::error_code decode_header(std::span<const std::byte, kHeaderBytes> bytes,
                              FrameHeader& out) noexcept {
  if (!may_be_frame(bytes)) return WireError::kBadMagic;
  // Before the checksum: another version may have it elsewhere, and its sender gets an answer.
  if (std::to_integer<std::uint8_t>(bytes[kVersionAt]) != kWireVersion) {
    return WireError::kBadVersion;
  }
  // Everything after this can rely on intact bytes: an error below means that the sender is wrong,
  // and not the transport.
  if (load_le<std::uint32_t>(bytes.subspan(kChecksumAt)) != checksum(bytes)) {
    return WireError::kBadChecksum;
  }
  const auto kind = std::to_integer<std::uint8_t>(bytes[kKindAt]);
  if (!is_known(kind)) return WireError::kBadKind;
  const auto flags = load_le<std::uint16_t>(bytes.subspan(kFlagsAt));
  // Unknown flags are refused instead of ignored, because a later version may give them a meaning
  // that changes the frame.
  if ((flags & ~kKnownFlags) != 0) return WireError::kBadFlags;
  const auto body_offset =
      load_le<std::uint32_t>(bytes.subspan(kBodyOffsetAt)) * std::uint64_t{kBodyOffsetUnit};
  if (body_offset != 0 && (flags & kFlagInPlace) == 0) return WireError::kBadReserved;

  out = FrameHeader{.kind = static_cast<FrameKind>(kind),
                    .flags = flags,
                    .request_id = load_le<std::uint64_t>(bytes.subspan(kRequestIdAt)),
                    .body_size = load_le<std::uint64_t>(bytes.subspan(kBodySizeAt)),
                    .step = load_le<std::uint64_t>(bytes.subspan(kStepAt)),
                    .sequence = load_le<std::uint64_t>(bytes.subspan(kSequenceAt)),
                    .range_begin = load_le<std::uint64_t>(bytes.subspan(kRangeBeginAt)),
                    .generation = load_le<Generation>(bytes.subspan(kGenerationAt)),
                    .body_offset = body_offset};
  return {};
}

void encode_header(const FrameHeader& header, std::span<std::byte, kHeaderBytes> out) noexcept {
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  out[kVersionAt] = std::byte{kWireVersion};
  out[kKindAt] = static_cast<std::byte>(header.kind);
  store_le(header.flags, out.subspan(kFlagsAt));
  store_le(header.request_id, out.subspan(kRequestIdAt));
  store_le(header.body_size, out.subspan(kBodySizeAt));
  store_le(header.step, out.subspan(kStepAt));
  store_le(header.sequence, out.subspan(kSequenceAt));
  store_le(header.range_begin, out.subspan(kRangeBeginAt));
  store_le(header.generation, out.subspan(kGenerationAt));
  // Four bytes of units of 64 bytes reach 256 GiB, and leave room for the checksum in one cache
  // line.
  store_le(static_cast<std::uint32_t>(header.body_offset / kBodyOffsetUnit),
           out.subspan(kBodyOffsetAt));
  // Last, because it covers all bytes before it.
  store_le(checksum(out), out.subspan(kChecksumAt));
}

}  // namespace disttf::net
