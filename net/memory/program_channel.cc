#include "net/memory/program_channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "net/waiting/descriptor.h"

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

namespace {

[[noreturn]] void fail(std::size_t bytes) {
  throw std::system_error(
      last_error(), "cannot share " + std::to_string(bytes) + " bytes of memory with the program");
}

// A mapping of no bytes is an error.
std::size_t bytes_of(std::size_t floats) {
  return std::max<std::size_t>(floats, 1) * sizeof(float);
}

void seal(int fd, ProgramMemory::Access access) noexcept {
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  // An old kernel has no seal against writing; the program then could, and would harm itself.
  if (access == ProgramMemory::Access::kRead &&
      fcntl(fd, F_ADD_SEALS, kSize | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) {
    return;
  }
  static_cast<void>(fcntl(fd, F_ADD_SEALS, kSize | F_SEAL_SEAL));
}

}  // namespace

ProgramMemory::ProgramMemory(std::size_t floats, Access access)
    : descriptor_(memfd_create("disttf-program", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const std::size_t bytes = bytes_of(floats);
  // fallocate() and not ftruncate(): memory that is missing is found out here, not by a signal
  // later.
  if (!descriptor_.is_open() ||
      fallocate(descriptor_.number(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    fail(bytes);
  }
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.number(), 0);
  if (address == MAP_FAILED) {
    fail(bytes);
  }
  floats_ = {static_cast<float*>(address), floats};
  // After the mapping of this process, which goes on to write.
  seal(descriptor_.number(), access);
}

ProgramMemory::~ProgramMemory() { unmap(); }

ProgramMemory::ProgramMemory(ProgramMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), floats_(std::exchange(other.floats_, {})) {}

ProgramMemory& ProgramMemory::operator=(ProgramMemory&& other) noexcept {
  if (this != &other) {
    unmap();
    descriptor_ = std::move(other.descriptor_);
    floats_ = std::exchange(other.floats_, {});
  }
  return *this;
}

void ProgramMemory::unmap() noexcept {
  if (floats_.data() != nullptr) {
    munmap(floats_.data(), bytes_of(floats_.size()));
    floats_ = {};
  }
}

}  // namespace disttf::net
