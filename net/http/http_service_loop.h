// One thread of HttpService: its epoll set, its connections, its handler. Only for
// http_service*.cc.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "net/http/http_service_connection.h"

namespace disttf::net {

// Read size per poll of a socket. A request with an image has 3 KB.
inline constexpr std::size_t kReceiveBytes = std::size_t{64} << 10U;

// Throws std::system_error if the kernel returned no descriptor.
inline Descriptor opened(int number) {
  if (number < 0) throw std::system_error(errno, std::system_category(), "no descriptor");
  return Descriptor(number);
}

struct HttpService::Shared {
  enum class Stage : std::uint8_t { kServing, kDraining, kStopping };

  HttpServiceOptions options;
  std::atomic<Stage> stage{Stage::kServing};
  std::list<Listener> listeners;  // of the accepting loop
  std::vector<std::unique_ptr<Loop>> loops;
  Loop* front = nullptr;                   // the loop of `is_quick`: the last one
  std::atomic<bool> front_is_over{false};  // it passes on no more connections

  [[nodiscard]] Loop& accepting() const noexcept {
    return front != nullptr ? *front : *loops.front();
  }
};

class HttpService::Loop {
 public:
  Loop(Shared& shared, std::unique_ptr<HttpServiceHandler> handler)
      : shared_(shared),
        options_(shared.options),
        handler_(std::move(handler)),
        epoll_(opened(::epoll_create1(EPOLL_CLOEXEC))),
        wake_(opened(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
        buffer_(kReceiveBytes, '\0') {
    must_watch(wake_.number(), &wake_);
  }

  [[nodiscard]] int descriptor() const noexcept { return epoll_.number(); }
  void listen(Listener& listener) { must_watch(listener.socket.number(), &listener); }
  void run();
  // Waits for an event for `patience`, and handles what is there. Returns the longest time until
  // the next turn; nullopt: it was stopped, and there is nothing left.
  std::optional<std::chrono::milliseconds> turn(std::chrono::milliseconds patience);
  // Callable from any thread.
  void wake() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_.number(), &one, sizeof(one)));
  }
  // Passes a connection to this loop, which owns it from then on. Callable from any thread.
  void pass(std::unique_ptr<Connection> connection) {
    const std::scoped_lock lock(mutex_);
    inbox_.push_back(std::move(connection));
    wake();
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  void answer(Connection& connection, const HttpReply& reply);

 private:
  // Returns false if the kernel has no memory for it.
  bool watch(int socket, std::uint32_t events, void* whose, int operation) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.ptr = whose;
    return ::epoll_ctl(epoll_.number(), operation, socket, &event) == 0;
  }
  void must_watch(int socket, void* whose) {
    if (!watch(socket, EPOLLIN, whose, EPOLL_CTL_ADD)) {
      throw std::system_error(errno, std::system_category(), "epoll");
    }
  }
  // Without memory for the work only this connection ends.
  template <class Work>
  void attempt(Connection& connection, const Work& work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      end(connection);
    }
  }
  void on_event(const epoll_event& event);
  void go_on_with(Connection& connection);
  [[nodiscard]] std::chrono::milliseconds time_to_next() const;
  void accept(Listener& listener);
  void take_inbox();
  bool make_room(const Listener& listener);
  void adopt(std::unique_ptr<Connection> passed);
  void begin(Connection& connection);
  void go_on(Connection& connection);
  void receive(Connection& connection);
  void receive_tls(Connection& connection);
  void wait_for(Connection& connection, std::uint32_t events);
  // Handles the connection in the next turn, even if its socket has no event.
  void resume(Connection& connection) {
    if (!std::exchange(connection.is_resumed, true)) resumed_.push_back(&connection);
  }
  void take(Connection& connection, std::string_view bytes);
  bool feed(Connection& connection, std::string_view& bytes);
  [[nodiscard]] static std::optional<HttpReply> refusal_of(Connection& connection);
  [[nodiscard]] bool is_front() const noexcept { return shared_.front == this; }
  [[nodiscard]] bool accepts() const noexcept { return &shared_.accepting() == this; }
  [[nodiscard]] Loop& least_busy() const;
  void let_send(Connection& connection);
  void hand_over();
  std::unique_ptr<Connection> remove(Connection& connection);
  [[nodiscard]] bool is_done_stopping();
  void on_reader_end(Connection& connection);
  [[nodiscard]] bool may_follow(const Connection& connection) const;
  void ask(Connection& connection);
  void put(Connection& connection, const HttpReply& reply, bool stays_open);
  void refuse(Connection& connection, int status);
  void refuse(Connection& connection, const HttpReply& reply);
  void send(Connection& connection);
  void after_sending(Connection& connection);
  void end(Connection& connection);
  void bury();
  void sweep();
  void stop_once();
  void hold(Connection& connection, std::size_t bytes) {
    held_bytes_ += bytes - connection.held_bytes;
    connection.held_bytes = bytes;
  }

  Shared& shared_;
  const HttpServiceOptions& options_;
  std::unique_ptr<HttpServiceHandler> handler_;
  Descriptor epoll_;
  Descriptor wake_;
  std::atomic<std::size_t> count_{0};  // with those that it has not adopted yet
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> inbox_;  // guarded by mutex_
  // Used only by the loop's own thread.
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> over_;
  std::vector<Connection*> moving_;  // away from this loop
  // Answered with bytes left over, have used up their share, or have more lines.
  std::vector<Connection*> resumed_;
  std::string buffer_;
  std::array<epoll_event, 256> events_{};
  std::size_t held_bytes_ = 0;
  ServiceClock::time_point now_;
  ServiceClock::time_point swept_;
  ServiceClock::time_point stop_at_ = ServiceClock::time_point::max();
  bool accept_pauses_ = false;  // until the next sweep
};

}  // namespace disttf::net
