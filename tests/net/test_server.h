// A Listener on 127.0.0.1 with its own thread, and raw clients for it, for socket tests.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/tcp/dial.h"
#include "net/tcp/listener.h"
#include "net/tcp/sockets.h"

namespace disttf::net {

// Far longer than any machine needs: a test that waits this long has failed.
[[nodiscard]] inline Deadline patience() { return Clock::now() + std::chrono::seconds(30); }
[[nodiscard]] inline Deadline after(std::chrono::milliseconds time) { return Clock::now() + time; }

[[nodiscard]] inline Cluster two_ps_two_workers() {
  Cluster cluster;
  cluster.ps = {{"ps0", 2222}, {"ps1", 2222}};
  cluster.workers = {{"w0", 2222}, {"w1", 2222}};
  return cluster;
}

[[nodiscard]] inline ListenerOptions ps0_options() {
  ListenerOptions options;
  options.self = {Job::kPs, 0};
  options.cluster = two_ps_two_workers();
  options.self_text = "ps 0 (ps0:2222)";
  return options;
}

// The HELLO of worker 1 to ps 0.
[[nodiscard]] inline Hello hello_of_worker_1() {
  return {.cluster = hash_of(two_ps_two_workers()),
          .from = {Job::kWorker, 1},
          .to = {Job::kPs, 0},
          .purpose = ChannelPurpose::kStep,
          .incarnation = 77};
}

[[nodiscard]] inline std::vector<std::byte> frame_bytes(FrameHeader header,
                                                        std::span<const std::byte> body) {
  header.body_size = body.size();
  std::vector<std::byte> bytes(kHeaderBytes + body.size());
  encode_header(header, std::span(bytes).first<kHeaderBytes>());
  std::copy(body.begin(), body.end(), bytes.begin() + kHeaderBytes);
  return bytes;
}

// Events on the server's thread that a test can wait for.
class Events {
 public:
  void add(std::string event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // Returns false if no event contains `part` in time.
  [[nodiscard]] bool wait_for(std::string_view part) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, patience(), [&] { return count_now(part) > 0; });
  }
  // Returns how many events contain `part` so far.
  [[nodiscard]] std::ptrdiff_t count(std::string_view part) {
    const std::lock_guard lock(mutex_);
    return count_now(part);
  }

 private:
  [[nodiscard]] std::ptrdiff_t count_now(std::string_view part) const {
    return std::count_if(events_.begin(), events_.end(), [&](const std::string& event) {
      return event.find(part) != std::string::npos;
    });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> events_;  // guarded by mutex_
};

using Connection = std::shared_ptr<ServerConnection>;

// The coroutine of an owner: acknowledges every frame.
inline asio::awaitable<void> answer_every_header(Connection connection) {
  FrameHeader header;
  while (!co_await connection->read_header(header, std::chrono::milliseconds(0))) {
    connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
  }
}

// The same, but returns every body.
inline asio::awaitable<void> echo_bodies(Connection connection) {
  FrameHeader header;
  while (!co_await connection->read_header(header, std::chrono::milliseconds(0))) {
    std::vector<std::byte> body(header.body_size);
    if (co_await connection->read_body(body, std::chrono::milliseconds(0))) co_return;
    connection->send({.kind = FrameKind::kParameters, .request_id = header.request_id},
                     std::move(body));
  }
}

class TestServer {
 public:
  using Serve = std::function<asio::awaitable<void>(Connection)>;

  // `serve` runs for each valid connection; its exceptions appear in events().
  explicit TestServer(Serve serve, ListenerOptions options = ps0_options())
      : listener_(context_, listen_on(context_, 0, ListenScope::kLoopback), std::move(options),
                  hooks(std::move(serve))),
        port_(listener_.port()) {}
  ~TestServer() {
    if (thread_.joinable()) {
      context_.stop();
      thread_.join();
    }
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  TestServer& start() {
    thread_ = std::thread([this] { context_.run(); });
    return *this;
  }
  [[nodiscard]] Address address() const { return {"127.0.0.1", port_}; }
  [[nodiscard]] Events& events() { return events_; }
  // Call before start(): refuses every valid HELLO with it.
  void refuse_all(Refusal refusal) { refusal_ = std::move(refusal); }

  // Runs `what` on the server's thread and returns its result.
  template <typename What>
  auto ask(What what) {
    std::packaged_task<decltype(what(std::declval<Listener&>()))()> task(
        [&] { return what(listener_); });
    auto answer = task.get_future();
    asio::post(context_, [&task] { task(); });
    return answer.get();
  }

 private:
  ListenerHooks hooks(Serve serve) {
    return {.make_welcome = [this](const Hello&) -> std::variant<Welcome, Refusal> {
              if (refusal_) return *refusal_;
              return Welcome{.incarnation = 5, .state = ShardState::kReady, .step = 9};
            },
            .on_connection = std::move(serve),
            .on_error =
                [this](const std::exception_ptr& failure) {
                  try {
                    std::rethrow_exception(failure);
                  } catch (const std::exception& error) {
                    events_.add(std::string("error: ") + error.what());
                  }
                },
            .log = [this](std::string_view sentence) { events_.add(std::string(sentence)); }};
  }

  Events events_;
  std::optional<Refusal> refusal_;
  asio::io_context context_{1};
  Listener listener_;
  const std::uint16_t port_;
  std::thread thread_;
};

// A TestServer that has started.
class LiveServer : public TestServer {
 public:
  explicit LiveServer(Serve serve, ListenerOptions options = ps0_options())
      : TestServer(std::move(serve), std::move(options)) {
    start();
  }
};

// A client that need not follow the protocol.
class RawClient {
 public:
  explicit RawClient(const Address& address) : socket_(context_) {
    socket_.connect({asio::ip::make_address(address.host), address.port});
  }
  void write(std::span<const std::byte> bytes) {
    asio::write(socket_, asio::buffer(bytes.data(), bytes.size()));
  }
  void write(std::string_view text) { asio::write(socket_, asio::buffer(text)); }
  void close() { socket_.close(); }
  // Returns whether a byte arrives before the server closes.
  [[nodiscard]] bool hears() {
    std::byte byte{};
    std::error_code end;
    return asio::read(socket_, asio::buffer(&byte, 1), end) == 1;
  }
  // Returns everything that arrives until the server closes, by end of file or reset.
  [[nodiscard]] std::vector<std::byte> read_to_end() {
    std::vector<std::byte> bytes;
    std::error_code end;
    asio::read(socket_, asio::dynamic_buffer(bytes), end);
    return bytes;
  }

 private:
  asio::io_context context_;
  asio::ip::tcp::socket socket_;
};

// Returns the refusal in the bytes that a raw client read; nullopt if there is none.
[[nodiscard]] inline std::optional<Refusal> refusal_in(std::span<const std::byte> bytes) {
  FrameHeader header;
  Refusal refusal;
  if (bytes.size() < kHeaderBytes || decode_header(bytes.first<kHeaderBytes>(), header) ||
      header.kind != FrameKind::kRefused || decode(bytes.subspan(kHeaderBytes), refusal)) {
    return std::nullopt;
  }
  return refusal;
}

}  // namespace disttf::net
