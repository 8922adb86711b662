// Packets between two processes of one machine that a common parent has connected: a socket pair of
// type SOCK_SEQPACKET, which keeps the borders of messages and carries descriptors.
//
// The functions are callable from any thread; one socket has one sender and one receiver at a time.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

#include "net/waiting/descriptor.h"

namespace disttf::net {

struct PacketPair {
  Descriptor first;
  Descriptor second;
};

// Both ends are closed by exec. Throws std::system_error (out of descriptors).
[[nodiscard]] PacketPair make_packet_pair();

// The most descriptors that one packet carries.
inline constexpr std::size_t kMostPacketDescriptors = 2;

// Sends one packet: `header`, then `body`. Does not block. `descriptors` are duplicated into the
// other process. Errors: std::errc::resource_unavailable_try_again if that has not read so many
// earlier packets that there is no room; std::errc::broken_pipe if it has closed its end; others of
// sendmsg(2).
// REQUIRES: header is not empty; at most kMostPacketDescriptors descriptors.
[[nodiscard]] std::error_code send_packet(int socket, std::span<const std::byte> header,
                                          std::span<const std::byte> body,
                                          std::span<const int> descriptors = {}) noexcept;

// What came.
struct PacketResult {
  std::size_t size = 0;  // 0: the other side has closed its end, or has sent an empty packet
  std::error_code error;
};
// Receives one packet into `bytes`, and its descriptors into `descriptors`; blocks until there is
// one. A packet is lost with std::errc::message_size if it was longer than `bytes`, and with
// std::errc::too_many_files_open if it had more descriptors than kMostPacketDescriptors, or than
// this process may open.
[[nodiscard]] PacketResult receive_packet(int socket, std::span<std::byte> bytes,
                                          std::vector<Descriptor>& descriptors);

}  // namespace disttf::net
