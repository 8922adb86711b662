// Shared by net/wire/messages.h and its neighbours: which header fields a kind of frame has, and
// the check of a header against that.
#pragma once

#include <cstdint>
#include <system_error>

#include "net/wire/frame.h"

namespace disttf::net {

// Apart from request_id and body_size.
struct MessageFields {
  FrameKind kind = FrameKind::kHello;
  std::uint16_t flags = 0;
  bool step = false;
  bool sequence = false;
  bool range_begin = false;
  bool generation = false;
};

// WireError::kUnexpected for another kind; kBadFlags or kBadReserved for a flag or a field that the
// kind does not have.
[[nodiscard]] inline std::error_code check(const FrameHeader& header,
                                           const MessageFields& fields) noexcept {
  if (header.kind != fields.kind) return WireError::kUnexpected;
  if ((header.flags & ~unsigned{fields.flags}) != 0) return WireError::kBadFlags;
  const bool fits = (fields.step || header.step == 0) &&
                    (fields.sequence || header.sequence == 0) &&
                    (fields.range_begin || header.range_begin == 0) &&
                    (fields.generation || header.generation == 0);
  return fits ? std::error_code{} : WireError::kBadReserved;
}

[[nodiscard]] constexpr std::uint16_t flag_if(bool is_set, FrameFlags flag) noexcept {
  return is_set ? std::uint16_t{flag} : std::uint16_t{0};
}

[[nodiscard]] constexpr bool has(const FrameHeader& header, FrameFlags flag) noexcept {
  return (header.flags & flag) != 0;
}

}  // namespace disttf::net
