// The listening side: accepts connections, performs the handshake, and passes each valid connection
// to its owner as a coroutine.
//
// Unauthenticated peers cost little and never disturb the run. Bytes that are no frame close the
// connection at once. A HELLO that does not match is answered with a sentence. A peer that sends
// nothing is closed after a timeout. The number of unauthenticated sockets is bounded.
//
// Everything runs on the one thread that runs the io_context; no locks.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "net/tcp/server_connection.h"
#include "net/wire/cluster.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"

namespace disttf::net {

struct ListenerOptions {
  TaskId self;
  Cluster cluster;        // a HELLO must carry its hash and speak from one of its tasks
  std::string self_text;  // for refusals: "ps 0 (ps0:2222)"
  // For `disttf server`, whose own cluster is not that of the runs it trains in
  // (net/wire/server_requests.h). `vacant`: a HELLO to a task of such a run that has not started
  // yet is closed without an answer, so its peers retry. `busy`: a HELLO to the server while its
  // task has the port is refused with kExitRestartMe.
  std::optional<ClusterHash> vacant;
  std::optional<ClusterHash> busy;
  // Limits for unauthenticated peers. A connection is closed if it has not sent enough to be
  // answered (net/tcp/pre_handshake_queue.h) within this time, or no valid HELLO within the
  // same time again, or if there are more than max_pending.
  std::chrono::milliseconds handshake_timeout{5000};
  std::size_t max_pending = 256;  // of both kinds, and refusals under way; the oldest is dropped
  std::size_t max_connections = 4096;
  // Connections of one task, and of all evaluators together, which need not be listed. The newest
  // connection of a task replaces its oldest. A surplus evaluator is closed without an answer and
  // retries.
  std::size_t max_of_task = 64;
  // How long accepting pauses when the process has no descriptors left.
  std::chrono::milliseconds accept_pause{100};
  ConnectionLimits limits;
  // Not null: a peer must prove with these that it belongs to the run; other peers are sent only
  // the reason. They must outlive all connections.
  Credentials* credentials = nullptr;
};

// Called on the io_context's thread, and never after stop().
struct ListenerHooks {
  // Returns the answer to a HELLO that fits the cluster.
  std::function<std::variant<Welcome, Refusal>(const Hello&)> make_welcome;
  // Runs as long as the connection is served; WELCOME has been queued. Called for every purpose but
  // kProbe, whose connection is closed after WELCOME.
  std::function<asio::awaitable<void>(std::shared_ptr<ServerConnection>)> on_connection;
  // Receives an exception that left on_connection or one of the hooks.
  std::function<void(const std::exception_ptr&)> on_error;
  // Logs one sentence about unauthenticated peers and refusals, at most one a second. May be empty.
  std::function<void(std::string_view)> log;
};

class Listener {
 public:
  // Accepts once the context runs. `context` must outlive the listener.
  Listener(asio::io_context& context, asio::ip::tcp::acceptor acceptor, ListenerOptions options,
           ListenerHooks hooks);
  ~Listener();  // stop()
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  // Connections closed before a well-formed HELLO: garbage, timeout, overflow.
  [[nodiscard]] std::uint64_t unauthenticated_peers() const noexcept;
  // Connections that sent a well-formed HELLO and were refused.
  [[nodiscard]] std::uint64_t refusals() const noexcept;
  // Open sockets, including handshakes.
  [[nodiscard]] std::size_t connections() const noexcept;
  // Closes the listening socket and all handshakes under way. Connections that were passed on stay
  // open, because their owners have them.
  void stop() noexcept;

 private:
  class Impl;
  // Shared with the coroutines of the accept loop and of the handshakes, which may be suspended in
  // the io_context when this object is destroyed.
  std::shared_ptr<Impl> impl_;
};

}  // namespace disttf::net
