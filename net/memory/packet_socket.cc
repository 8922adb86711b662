#include "net/memory/packet_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "net/waiting/last_error.h"

namespace disttf::net {
namespace {

struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostPacketDescriptors)> bytes{};
};

void take_descriptors(msghdr& message, std::vector<Descriptor>& descriptors) {
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
       each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(each) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(number);
    }
  }
}

}  // namespace

PacketPair make_packet_pair() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::system_error(last_error(), "cannot connect two processes");
  }
  return {.first = Descriptor(ends[0]), .second = Descriptor(ends[1])};
}

std::error_code send_packet(int socket, std::span<const std::byte> header,
                            std::span<const std::byte> body,
                            std::span<const int> descriptors) noexcept {
  assert(descriptors.size() <= kMostPacketDescriptors);
  // sendmsg() takes pointers to mutable bytes and does not change them.
  std::array<iovec, 2> parts = {
      iovec{.iov_base = const_cast<std::byte*>(header.data()), .iov_len = header.size()},  // NOLINT
      iovec{.iov_base = const_cast<std::byte*>(body.data()), .iov_len = body.size()}};     // NOLINT
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = body.empty() ? 1 : 2;
  Control control;
  if (!descriptors.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EINTR) {
      return last_error();
    }
  }
  return {};
}

PacketResult receive_packet(int socket, std::span<std::byte> bytes,
                            std::vector<Descriptor>& descriptors) {
  descriptors.clear();
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t size = 0;
  while ((size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno != EINTR) {
      return {.size = 0, .error = last_error()};
    }
  }
  take_descriptors(message, descriptors);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    descriptors.clear();
    return {.size = 0,
            .error = std::make_error_code((message.msg_flags & MSG_TRUNC) != 0
                                              ? std::errc::message_size
                                              : std::errc::too_many_files_open)};
  }
  return {.size = static_cast<std::size_t>(size), .error = {}};
}

}  // namespace disttf::net
