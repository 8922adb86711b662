#include "net/memory/handover.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "net/waiting/descriptor.h"

namespace disttf::net {
namespace {

// Length of the listen queue. Unauthenticated peers may connect as well, so the queue has room for
// some of them besides the ps. A full queue keeps the ps out, and tensors are then sent over the
// connection.
constexpr int kWaiting = 16;
// The most connections that are examined: the queue's, and those that arrive meanwhile.
constexpr int kLooks = 2 * kWaiting;

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address);
  }
};

AbstractAddress address_of(std::uint64_t name) {
  constexpr std::string_view kPrefix = "disttf-";
  constexpr std::string_view kDigits = "0123456789abcdef";
  AbstractAddress made;
  made.address.sun_family = AF_UNIX;
  // The first byte is 0: an abstract name, no file. The name ends where the address ends.
  char* const begin = std::copy(kPrefix.begin(), kPrefix.end(), made.address.sun_path + 1);
  char* end = begin;
  for (int shift = 60; shift >= 0; shift -= 4) {
    *end++ = kDigits[(name >> static_cast<unsigned>(shift)) & 0xFU];
  }
  made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path)) +
              static_cast<socklen_t>(end - made.address.sun_path);
  return made;
}

// SOCK_SEQPACKET keeps message boundaries, and a descriptor belongs to one message.
Descriptor make_socket() noexcept {
  return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Compares the user of the process that connected, or of the one that listens, at that time, with
// this one's.
bool is_of_this_user(const Descriptor& peer) noexcept {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  return ::getsockopt(peer.number(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
         credentials.uid == ::geteuid();
}

// Room for exactly one descriptor: the kernel closes what does not fit and sets a flag. CMSG_SPACE,
// which is aligned, would have room for two.
struct Control {
  static constexpr std::size_t kBytes = CMSG_LEN(sizeof(int));
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

// A token and a descriptor as one message. `message` points into the other members.
struct Letter {
  explicit Letter(std::uint64_t says = 0) noexcept : token(says) {
    message.msg_iov = &said;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = Control::kBytes;
  }
  Letter(const Letter&) = delete;
  Letter& operator=(const Letter&) = delete;
  ~Letter() = default;

  std::uint64_t token;
  iovec said{.iov_base = &token, .iov_len = sizeof token};
  Control control;
  msghdr message{};
};

}  // namespace

std::optional<std::uint64_t> draw_token() noexcept {
  std::uint64_t token = 0;
  if (::getrandom(&token, sizeof token, 0) != sizeof token) {
    return std::nullopt;
  }
  return token;
}

PeerListener::PeerListener(Descriptor listener, std::uint64_t name) noexcept
    : listener_(std::move(listener)), name_(name) {}

std::unique_ptr<PeerListener> PeerListener::open(std::error_code& error) {
  // 0 means "no listener" in an offer, so it is not used as a name.
  const std::uint64_t name = draw_token().value_or(0);
  if (name == 0) {
    error = std::make_error_code(std::errc::resource_unavailable_try_again);
    return nullptr;
  }
  Descriptor listener = make_socket();
  const AbstractAddress address = address_of(name);
  if (!listener.is_open() || ::bind(listener.number(), address.get(), address.size) != 0 ||
      ::listen(listener.number(), kWaiting) != 0) {
    error = last_error();
    return nullptr;
  }
  error.clear();
  return std::unique_ptr<PeerListener>(new PeerListener(std::move(listener), name));
}

std::optional<HandedOver> PeerListener::admit(std::uint64_t token) const {
  // Bounded: a process that connects again and again must not hold this thread.
  for (int looks = 0; looks < kLooks; ++looks) {
    Descriptor peer(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer.is_open()) {
      return std::nullopt;
    }
    if (!is_of_this_user(peer)) {
      continue;
    }
    // Wrong token or no descriptor: the connection closes here.
    if (Descriptor what = take_over(peer, token); what.is_open()) {
      return HandedOver{.peer = std::move(peer), .what = std::move(what)};
    }
  }
  return std::nullopt;
}

Descriptor connect_to_peer_listener(std::uint64_t name, std::error_code& error) {
  error.clear();
  Descriptor peer = make_socket();
  const AbstractAddress address = address_of(name);
  if (!peer.is_open() || ::connect(peer.number(), address.get(), address.size) != 0) {
    error = last_error();
    return Descriptor();
  }
  // Checked at this end, too: names are visible to all users, and a process of another user may
  // have bound this one after its owner closed it.
  if (!is_of_this_user(peer)) {
    error = std::make_error_code(std::errc::permission_denied);
    return Descriptor();
  }
  return peer;
}

std::error_code hand_over(const Descriptor& peer, std::uint64_t token, int what) {
  Letter letter(token);
  cmsghdr* const head = CMSG_FIRSTHDR(&letter.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = Control::kBytes;
  std::memcpy(CMSG_DATA(head), &what, sizeof what);
  const ssize_t sent = ::sendmsg(peer.number(), &letter.message, MSG_NOSIGNAL);
  return sent == sizeof token ? std::error_code{} : last_error();
}

Descriptor take_over(const Descriptor& peer, std::uint64_t token) {
  Letter letter;
  const ssize_t received = ::recvmsg(peer.number(), &letter.message, MSG_CMSG_CLOEXEC);
  Descriptor what;
  if (received < 0) {
    return what;
  }
  const cmsghdr* const head = CMSG_FIRSTHDR(&letter.message);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == Control::kBytes) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(head), sizeof number);
    what = Descriptor(number);
  }
  // The descriptor is owned before the checks, so a rejected one is closed.
  const bool is_whole = (letter.message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (received != sizeof token || !is_whole || letter.token != token) {
    what.reset();
  }
  return what;
}

}  // namespace disttf::net
