// What the sources of messages (net/wire/messages.h and its neighbours) have in common: which
// fields of a header a kind of frame has, and what is made of a header with others.
#pragma once

#include <cstdint>
#include <system_error>

#include "net/wire/frame.h"

namespace disttf::net {

// Besides request_id and body_size.
struct MessageFields {
  FrameKind kind = FrameKind::kHello;
  std::uint16_t flags = 0;
  bool step = false;
  bool sequence = false;
  bool range_begin = false;
  bool generation = false;
};

// WireError::kUnexpected: of another kind; kBadFlags, kBadReserved: with a flag or a field that the
// kind has not.
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
