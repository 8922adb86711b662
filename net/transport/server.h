// The listening side: accepts connections, does the handshake, hands each valid one to its owner
// as a coroutine.
//
// Strangers cost little and never disturb the run: bytes that are no frame are closed at once, a
// HELLO that does not fit is answered with a sentence, silence is cut off, and the number of
// sockets that have not yet proved anything is bounded.
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

#include "net/transport/server_connection.h"
#include "net/wire/cluster.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"

namespace disttf::net {

struct ServerOptions {
  TaskId self;
  Cluster cluster;        // a HELLO must carry its hash and speak from one of its tasks
  std::string self_text;  // for refusals, "ps 0 (ps0:2222)"
  // A server's own cluster is not that of the runs it trains in (net/wire/run_order.h). A HELLO to
  // a task of such a run that is not there yet is closed without an answer: its peers try again.
  // One to the server, while its task has the port, is refused with kExitRestartMe.
  std::optional<ClusterHash> vacant;
  std::optional<ClusterHash> busy;
  // Strangers are cut off: too little to be answered (net/transport/doorstep.h) within this time,
  // or no valid HELLO within as much again; or more than max_pending of them.
  std::chrono::milliseconds handshake_timeout{5000};
  std::size_t max_pending = 256;  // of either kind, and refusals under way; the oldest is dropped
  std::size_t max_connections = 4096;
  // Of one task, and of all evaluators together, who need not be listed. The oldest of a task makes
  // room for its newest; an evaluator too many is closed without an answer, and tries again.
  std::size_t max_of_task = 64;
  // Accepting stops for this long when the process has no descriptors left.
  std::chrono::milliseconds accept_pause{100};
  ConnectionLimits limits;
  // Not null: who connects must be of the run by them, and nothing is said to anybody else but why.
  // They must outlive all connections.
  Credentials* credentials = nullptr;
};

// Called on the io_context's thread, and never after stop().
struct ServerHooks {
  // The answer to a HELLO that fits the cluster.
  std::function<std::variant<Welcome, Refusal>(const Hello&)> make_welcome;
  // Runs as long as the connection is served; WELCOME has been queued. Called for every purpose
  // but kProbe, whose connection is closed after WELCOME.
  std::function<asio::awaitable<void>(std::shared_ptr<ServerConnection>)> on_connection;
  // An exception that left on_connection or one of the hooks.
  std::function<void(const std::exception_ptr&)> on_error;
  // One sentence about strangers and refusals, at most one a second. May be empty.
  std::function<void(std::string_view)> log;
};

class Listener {
 public:
  // Accepts once the context runs. `context` must outlive the listener.
  Listener(asio::io_context& context, asio::ip::tcp::acceptor acceptor, ServerOptions options,
           ServerHooks hooks);
  ~Listener();  // stop()
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  // Connections closed because they never said a well-formed HELLO: garbage, silence, overflow.
  [[nodiscard]] std::uint64_t strangers() const noexcept;
  // Connections that said a well-formed HELLO and were refused.
  [[nodiscard]] std::uint64_t refusals() const noexcept;
  // Sockets open, handshakes included.
  [[nodiscard]] std::size_t connections() const noexcept;
  // Closes the listening socket and all handshakes under way. Connections that were handed on
  // stay open: they are the owner's.
  void stop() noexcept;

 private:
  class Impl;
  // Shared with the coroutines of the accept loop and the handshakes, which may be suspended in
  // the io_context when this object goes.
  std::shared_ptr<Impl> impl_;
};

}  // namespace disttf::net
