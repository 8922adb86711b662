#include "net/tcp/pre_handshake_queue.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <system_error>
#include <utility>

#include "net/tls/tls_socket.h"
#include "net/waiting/descriptor.h"

namespace disttf::net {
namespace {

// A record that claims more than TLS allows (RFC 8446, 5.1 and 5.2) is not waited for.
constexpr std::size_t kMostOfRecord = kRecordBytes + 256;

// Sets from how many bytes on the socket is readable.
void set_low_mark(int fd, int bytes) noexcept {
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes));
}

}  // namespace

PreHandshakeQueue::PreHandshakeQueue(bool for_tls)
    : for_tls_(for_tls), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.is_open()) throw std::system_error(last_error(), "cannot make an epoll descriptor");
}

int PreHandshakeQueue::watched() const {
  Descriptor copy = copy_of(epoll_.number());
  if (!copy.is_open()) throw std::system_error(last_error(), "cannot copy a descriptor");
  return copy.release();
}

PreHandshakeQueue::Look PreHandshakeQueue::look_at(int fd) const noexcept {
  std::array<std::byte, kRecordHeaderBytes> head{};
  // Peeks: the bytes stay in the socket for the handshake that reads them later.
  const ssize_t size =
      ::recv(fd, head.data(), for_tls_ ? head.size() : std::size_t{1}, MSG_PEEK | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {HelloState::kWaits, 1};
  if (size <= 0) return {HelloState::kEnded};
  // Bytes that cannot begin TLS are enough: the handshake answers such a peer with the reason.
  if (!for_tls_ || !may_be_tls(head)) return {HelloState::kEnough};
  if (static_cast<std::size_t>(size) < head.size()) {
    return {HelloState::kWaits, static_cast<int>(head.size())};
  }
  const std::size_t record =
      (std::to_integer<std::size_t>(head[3]) << 8U) | std::to_integer<std::size_t>(head[4]);
  const auto wanted = static_cast<int>(head.size() + record);
  int there = 0;
  // Where the kernel does not report the count, the handshake finds out.
  if (record > kMostOfRecord || ::ioctl(fd, FIONREAD, &there) != 0 || there >= wanted) {
    return {HelloState::kEnough};
  }
  return {HelloState::kWaits, wanted};
}

std::optional<Descriptor> PreHandshakeQueue::add(Descriptor socket, Time until) {
  const Look look = look_at(socket.number());
  if (look.hello_state == HelloState::kEnough) return socket;
  if (look.hello_state == HelloState::kEnded) {
    ++ended_;
    return std::nullopt;
  }
  // With this mark a peer that sends its hello byte by byte causes no wake for each of them.
  if (look.wanted > 1) set_low_mark(socket.number(), look.wanted);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  // A running number and not the descriptor: it is never reused, so an event cannot be attributed
  // to a newer connection.
  event.data.u64 = next_;
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket.number(), &event) != 0) {
    set_low_mark(socket.number(), 1);  // not in the epoll: hand it to a handshake now
    return socket;
  }
  waiting_.emplace(next_++,
                   Waiting{.socket = std::move(socket), .until = until, .wanted = look.wanted});
  return std::nullopt;
}

// A connection that stays readable without the bytes that were waited for is returned, too. Causes
// are urgent data, which a peek does not pass, a kernel short of memory, or one without
// SO_RCVLOWAT. Here it would be polled forever; a handshake reads what is there and then sleeps.
std::vector<PreHandshakeQueue::Arrival> PreHandshakeQueue::ready() {
  std::vector<Arrival> enough;
  // The set is level-triggered: what does not fit is reported by the next call.
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.number(), events.data(), events.size(), 0);
  for (int each = 0; each < count; ++each) {
    const epoll_event& event = events[static_cast<std::size_t>(each)];
    const auto found = waiting_.find(event.data.u64);
    if (found == waiting_.end()) continue;
    Waiting& waiting = found->second;
    const int fd = waiting.socket.number();
    const Look look = look_at(fd);
    const bool says_no_more = (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (look.hello_state == HelloState::kEnded ||
        (look.hello_state == HelloState::kWaits && says_no_more)) {
      ++ended_;
    } else if (look.hello_state == HelloState::kWaits && look.wanted > waiting.wanted) {
      waiting.wanted = look.wanted;
      set_low_mark(fd, look.wanted);
      continue;
    } else {
      // The handshake has to see every further byte as it arrives.
      if (waiting.wanted > 1) set_low_mark(fd, 1);
      static_cast<void>(::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, fd, nullptr));
      enough.push_back({std::move(waiting.socket), waiting.until});
    }
    waiting_.erase(found);
  }
  return enough;
}

Descriptor PreHandshakeQueue::take_oldest() {
  assert(!waiting_.empty());
  // All have the same timeout, so the first in the order of arrival also expires first.
  Descriptor oldest = std::move(waiting_.begin()->second.socket);
  waiting_.erase(waiting_.begin());
  return oldest;
}

}  // namespace disttf::net
