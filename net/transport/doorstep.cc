#include "net/transport/doorstep.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <system_error>
#include <utility>

#include "net/transport/last_error.h"
#include "net/transport/tls_socket.h"

namespace disttf::net {
namespace {

// A record that says it is longer than TLS allows (RFC 8446, 5.1 and 5.2) need not be awaited.
constexpr std::size_t kMostOfRecord = kRecordBytes + 256;

// From how many bytes on it is readable.
void set_low_mark(int fd, int bytes) noexcept {
  static_cast<void>(::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes));
}

}  // namespace

Doorstep::Doorstep(bool for_tls) : for_tls_(for_tls), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.is_open()) throw std::system_error(last_error(), "cannot make an epoll descriptor");
}

std::optional<int> Doorstep::bytes_wanted(int fd) const noexcept {
  std::array<std::byte, kRecordHeaderBytes> head{};
  const ssize_t size =
      ::recv(fd, head.data(), for_tls_ ? head.size() : std::size_t{1}, MSG_PEEK | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
  if (size <= 0 || !for_tls_ || !may_be_tls(head)) return std::nullopt;
  if (static_cast<std::size_t>(size) < head.size()) return static_cast<int>(head.size());
  const std::size_t record =
      (std::to_integer<std::size_t>(head[3]) << 8U) | std::to_integer<std::size_t>(head[4]);
  const auto wanted = static_cast<int>(head.size() + record);
  int there = 0;
  if (record > kMostOfRecord || ::ioctl(fd, FIONREAD, &there) != 0 || there >= wanted) {
    return std::nullopt;
  }
  return wanted;
}

std::optional<Descriptor> Doorstep::come(Descriptor socket, Time until) {
  const std::optional<int> wanted = bytes_wanted(socket.number());
  if (!wanted) return socket;
  if (*wanted > 1) set_low_mark(socket.number(), *wanted);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = next_;
  // Without a place in the epoll it is served as it is.
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket.number(), &event) != 0) return socket;
  waiting_.emplace(
      next_++,
      Waiting{.socket = std::move(socket), .until = until, .is_asked_for_more = *wanted > 1});
  return std::nullopt;
}

std::vector<Descriptor> Doorstep::ready() {
  std::vector<Descriptor> enough;
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.number(), events.data(), events.size(), 0);
  for (int each = 0; each < count; ++each) {
    const epoll_event& event = events[static_cast<std::size_t>(each)];
    const auto found = waiting_.find(event.data.u64);
    if (found == waiting_.end()) continue;
    Waiting& waiting = found->second;
    const int fd = waiting.socket.number();
    const bool has_ended = (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    const std::optional<int> wanted = has_ended ? std::nullopt : bytes_wanted(fd);
    if (wanted) {
      set_low_mark(fd, *wanted);
      waiting.is_asked_for_more = true;
      continue;
    }
    if (waiting.is_asked_for_more) set_low_mark(fd, 1);
    static_cast<void>(::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, fd, nullptr));
    enough.push_back(std::move(waiting.socket));
    waiting_.erase(found);
  }
  return enough;
}

Descriptor Doorstep::take_oldest() {
  assert(!waiting_.empty());
  Descriptor oldest = std::move(waiting_.begin()->second.socket);
  waiting_.erase(waiting_.begin());
  return oldest;
}

}  // namespace disttf::net
