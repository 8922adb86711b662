// A connection that follows no protocol but what the test writes: for hostile frames.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"

namespace disttf::test_process {

using Bytes = std::vector<std::byte>;

[[nodiscard]] Bytes bytes_of(std::string_view text);
// A whole frame; body_size is the body's.
[[nodiscard]] Bytes frame(net::FrameHeader header, std::span<const std::byte> body = {});
[[nodiscard]] Bytes hello_frame(const net::Hello& hello);

class RawPeer {
 public:
  // Connects to 127.0.0.1. Throws std::system_error.
  explicit RawPeer(std::uint16_t port);
  // What the other side has closed already is no error here.
  void write(std::span<const std::byte> bytes) const;
  // All that comes until the other side closes, or nothing new for `limit`: then `timed_out`.
  [[nodiscard]] Bytes read_to_end(std::chrono::milliseconds limit, bool& timed_out) const;
  // The next frame's header; its body is put into `body`. False: closed, or nothing in `limit`.
  [[nodiscard]] bool read_frame(net::FrameHeader& header, Bytes& body,
                                std::chrono::milliseconds limit) const;

 private:
  [[nodiscard]] bool read_exactly(std::span<std::byte> bytes,
                                  std::chrono::milliseconds limit) const;
  data::FileDescriptor socket_;
};

// The sentence of the first REFUSED among these frames.
[[nodiscard]] std::optional<net::Refusal> refusal_in(std::span<const std::byte> bytes);

}  // namespace disttf::test_process
