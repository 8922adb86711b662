// Packets and memory between a task and a user's program.
//
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

// Memory that this task shares with a program on the same machine (docs/program_protocol.md): one
// block that the program only reads, or one that it writes as well.
//
// Nothing here synchronises; the messages do. An object belongs to one thread at a time.
class ProgramMemory {
 public:
  enum class Access { kRead, kWrite };  // of the program

  ProgramMemory() = default;
  // Zeroed floats on page boundaries. Its size cannot change, so that reading it cannot fault; with
  // kRead, where the kernel can forbid that (Linux 5.1), the program cannot write to it. Throws
  // std::system_error where the system does not have that much.
  ProgramMemory(std::size_t floats, Access access);
  ~ProgramMemory();
  ProgramMemory(ProgramMemory&& other) noexcept;
  ProgramMemory& operator=(ProgramMemory&& other) noexcept;
  ProgramMemory(const ProgramMemory&) = delete;
  ProgramMemory& operator=(const ProgramMemory&) = delete;

  [[nodiscard]] std::span<float> floats() const noexcept { return floats_; }
  // To be handed to the program.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.number(); }

 private:
  void unmap() noexcept;

  Descriptor descriptor_;
  std::span<float> floats_;
};

}  // namespace disttf::net
