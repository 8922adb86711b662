// The listening side: accepts connections, does the handshake, hands each on as a coroutine peer.
//
// Everything runs on the one thread that runs the io_context; no locks.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/cluster.h"
#include "net/frame.h"
#include "net/handshake.h"

namespace disttf::net {

// One accepted connection that said a valid HELLO. shared_ptr because the reader coroutine, the
// writer coroutine and the owner's table each outlive the others now and then.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  [[nodiscard]] const Hello& hello() const noexcept;
  [[nodiscard]] const std::string& peer_text() const noexcept;  // "worker 1 (10.0.0.7:51312)"
  [[nodiscard]] bool is_open() const noexcept;

  // The next header. timeout: silence allowed; zero waits for ever.
  asio::awaitable<std::error_code> read_header(FrameHeader& header, std::chrono::milliseconds timeout);
  // Exactly body.size() bytes into place; a stalled sender is cut off after `timeout` without a byte.
  asio::awaitable<std::error_code> read_body(std::span<std::byte> body, std::chrono::milliseconds timeout);
  // Reads and throws away `bytes` bytes.
  asio::awaitable<std::error_code> discard_body(std::uint64_t bytes, std::chrono::milliseconds timeout);

  // Queues a frame. `owned`: a body that the queue keeps. Frames leave in order.
  void send(FrameHeader header, std::vector<std::byte> owned = {});
  // As send, the body borrowed: `body` must stay unchanged until the frame has left or the
  // connection is closed (a ps's parameters between two steps).
  void send_borrowed(FrameHeader header, std::span<const std::byte> body);
  // Queues REFUSED and closes once it has left (bounded).
  void refuse(const Refusal& refusal);
  void close() noexcept;
};

struct ServerOptions {
  TaskId self;
  ClusterHash cluster{};
  std::string self_text;  // for refusals, "ps 0 (ps0:2222)"
  // Strangers are cut off: no valid HELLO within this time, or more than max_pending of them.
  std::chrono::milliseconds handshake_timeout{5000};
  std::size_t max_pending = 256;     // handshakes under way; the oldest is dropped
  std::size_t max_connections = 4096;
};

}  // namespace disttf::net
