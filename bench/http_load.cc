#include "bench/http_load.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/echo_peer.h"
#include "data/file.h"

namespace disttf::bench {
namespace {

using LoadClock = std::chrono::steady_clock;

[[noreturn]] void fail_load(const std::string& what) {
  throw std::runtime_error("HTTP load: " + what);
}

// Ignores case, because servers differ.
std::optional<std::size_t> content_length(std::string_view head) {
  constexpr std::string_view kField = "\r\ncontent-length: ";
  const auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); };
  const auto found = std::search(head.begin(), head.end(), kField.begin(), kField.end(),
                                 [&same](char b, char a) { return same(a, b); });
  if (found == head.end()) {
    return std::nullopt;
  }
  const char* const begin = head.data() + (found - head.begin()) + kField.size();
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(begin, head.data() + head.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// A connection that sends one request after the other.
class LoadConnection {
 public:
  LoadConnection(std::uint16_t port, const std::string& request)
      : request_(request), socket_(connect_to_loopback(port)) {
    fcntl(socket_.number(), F_SETFL, O_NONBLOCK);
  }

  [[nodiscard]] int fd() const noexcept { return socket_.number(); }

  void ask() {
    begun_ = LoadClock::now();
    unsent_ = request_;
    send_more();
  }

  // Handles readiness of the socket. Returns the response time once the response is complete.
  std::optional<LoadClock::duration> go_on() {
    send_more();
    for (;;) {
      const ssize_t got = ::recv(fd(), buffer_.data(), buffer_.size(), 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return std::nullopt;
      }
      if (got <= 0) {
        fail_load("a connection closed before its response");
      }
      pending_.append(buffer_.data(), static_cast<std::size_t>(got));
      if (is_answered()) {
        return LoadClock::now() - begun_;
      }
    }
  }

  // The body of the last response.
  [[nodiscard]] const std::string& body() const noexcept { return body_; }

 private:
  void send_more() {
    while (!unsent_.empty()) {
      const ssize_t sent = ::send(fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
      }
      if (sent <= 0) {
        fail_load("cannot write to a connection");
      }
      unsent_.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  bool is_answered() {
    const std::size_t end = pending_.find("\r\n\r\n");
    if (end == std::string::npos) {
      return false;
    }
    const std::string_view head = std::string_view(pending_).substr(0, end + 2);
    const std::optional<std::size_t> size = content_length(head);
    if (!head.starts_with("HTTP/1.1 200") || !size) {
      fail_load("a response is not 200 with a Content-Length: " + pending_.substr(0, 300));
    }
    if (pending_.size() < end + 4 + *size) {
      return false;
    }
    body_.assign(pending_, end + 4, *size);
    pending_.erase(0, end + 4 + *size);
    return true;
  }

  const std::string& request_;
  data::FileDescriptor socket_;
  std::string_view unsent_;
  std::string pending_;
  std::string body_;
  std::array<char, 65536> buffer_{};
  LoadClock::time_point begun_;
};

// All connections of a load, in one epoll set.
class Crowd {
 public:
  explicit Crowd(const HttpLoad& load) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t each = 0; each < load.connections; ++each) {
      connections_.push_back(std::make_unique<LoadConnection>(load.port, load.request));
      epoll_event event{};
      event.events = EPOLLIN | EPOLLOUT | EPOLLET;
      event.data.u64 = each;
      if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, connections_.back()->fd(), &event) != 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
      }
    }
    for (const auto& each : connections_) {
      each->ask();
    }
  }

  // Calls `took` with each response time, until `end` has passed; each connection sends its next
  // request at once.
  template <typename Took>
  void run_until(LoadClock::time_point end, const Took& took) {
    constexpr int kWaitMs = 100;
    constexpr std::chrono::seconds kLongestSilence{30};
    auto heard = LoadClock::now();
    std::array<epoll_event, 64> events{};
    bool has_any = false;
    for (auto now = heard; now < end || !has_any; now = LoadClock::now()) {
      if (now - heard > kLongestSilence) {
        fail_load("no response for 30 s");
      }
      const int count = ::epoll_wait(epoll_.number(), events.data(), events.size(), kWaitMs);
      for (const epoll_event& event :
           std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
        LoadConnection& connection = *connections_[event.data.u64];
        if (const auto time = connection.go_on()) {
          has_any = true;
          heard = LoadClock::now();
          took(*time);
          connection.ask();
        }
      }
    }
  }

 private:
  data::FileDescriptor epoll_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
};

double microseconds_of(LoadClock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

HttpLoadResult run_http_load(const HttpLoad& load) {
  Crowd crowd(load);
  crowd.run_until(LoadClock::now() + load.time / 10, [](LoadClock::duration) {});
  std::vector<LoadClock::duration> times;
  const auto begin = LoadClock::now();
  crowd.run_until(begin + load.time, [&times](LoadClock::duration time) { times.push_back(time); });
  const std::chrono::duration<double> took = LoadClock::now() - begin;
  std::ranges::sort(times);
  return {.requests_per_second = static_cast<double>(times.size()) / took.count(),
          .p50_us = microseconds_of(times[times.size() / 2]),
          .p99_us = microseconds_of(times[times.size() * 99 / 100])};
}

std::string await_answer(std::uint16_t port, const std::string& request) {
  constexpr std::chrono::seconds kLongestSilence{120};
  constexpr std::chrono::milliseconds kAgain{50};
  const auto deadline = LoadClock::now() + kLongestSilence;
  for (;;) {
    try {
      LoadConnection connection(port, request);
      connection.ask();
      while (!connection.go_on()) {
        std::this_thread::yield();
      }
      return connection.body();
    } catch (const std::runtime_error& error) {  // no server listens there, or it is not ready yet
      if (LoadClock::now() > deadline) {
        fail_load("port " + std::to_string(port) + " does not answer: " + error.what());
      }
    }
    std::this_thread::sleep_for(kAgain);
  }
}

}  // namespace disttf::bench
