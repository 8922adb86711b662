// A frame as one gathering write: header and body leave in one system call, and the body is not
// copied. Used by both ends of a connection; pure.
#pragma once

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <cstddef>
#include <span>

namespace disttf::net {

// Returns what is left of header and body after `sent` bytes of both.
// REQUIRES: sent <= header.size() + body.size().
[[nodiscard]] inline std::array<asio::const_buffer, 2> unsent(std::span<const std::byte> header,
                                                              std::span<const std::byte> body,
                                                              std::size_t sent) noexcept {
  const auto header_left = header.subspan(std::min(sent, header.size()));
  const auto body_left = body.subspan(sent - std::min(sent, header.size()));
  return {asio::buffer(header_left.data(), header_left.size()),
          asio::buffer(body_left.data(), body_left.size())};
}

}  // namespace disttf::net
