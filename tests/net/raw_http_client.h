// A client of an HTTP server that sends invalid or unusual bytes.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/loopback.h"

namespace disttf::net::test {

// Writes the given bytes to a socket and reads to the end.
class RawClient {
 public:
  explicit RawClient(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  explicit RawClient(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address = test_support::loopback(port);
    connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  ~RawClient() {
    if (fd_ >= 0) close(fd_);
  }
  RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  RawClient& operator=(RawClient&&) = delete;

  RawClient& write(std::string_view text) {
    test_support::send_all(fd_, text);
    return *this;
  }
  void end_writing() const { shutdown(fd_, SHUT_WR); }
  // Reads to the end, or until the text contains `enough`.
  std::string read(const std::string& enough = "\r\n\r\n\r\n\r\n") const {
    std::string text;
    std::array<char, 4096> buffer{};
    ssize_t size = 0;
    std::size_t searched = 0;  // end of the text already searched
    while (text.find(enough, searched) == std::string::npos &&
           (size = recv(fd_, buffer.data(), buffer.size(), 0)) > 0) {
      searched = text.size() - std::min(text.size(), enough.size());
      text.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return text;
  }
  // Returns whether the server closes within `time` without a byte.
  [[nodiscard]] bool is_closed_within(std::chrono::milliseconds time) const {
    pollfd waits{.fd = fd_, .events = POLLIN, .revents = 0};
    std::array<char, 1> byte{};
    return poll(&waits, 1, static_cast<int>(time.count())) == 1 &&
           recv(fd_, byte.data(), byte.size(), MSG_DONTWAIT) <= 0;
  }
  // Returns whether the server closes before the time limit; ignores further bytes.
  [[nodiscard]] bool is_closed() const {
    std::array<char, 4096> buffer{};
    ssize_t size = 0;
    while ((size = recv(fd_, buffer.data(), buffer.size(), 0)) > 0) {
    }
    return size == 0 || errno == ECONNRESET;
  }

 private:
  void connect_to(const sockaddr* address, socklen_t size) const {
    if (connect(fd_, address, size) != 0) throw std::runtime_error("cannot connect");
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  int fd_;
};

}  // namespace disttf::net::test
