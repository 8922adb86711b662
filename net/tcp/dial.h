// The requester's half of the handshake: connect, HELLO, WELCOME. As a coroutine on the thread that
// runs the io_context, or blocking the calling thread.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include "net/tcp/channel.h"
#include "net/tcp/lookup.h"
#include "net/tcp/server_connection.h"
#include "net/wire/address.h"
#include "net/wire/handshake.h"

namespace disttf::net {

struct Dialed {
  // Null unless welcomed. Its hello() has the peer as the sender, so peer_text() names the peer.
  std::shared_ptr<ServerConnection> connection;
  Welcome welcome;  // valid when connection is set
  Refusal refusal;  // valid when error is WireError::kRefused
  std::error_code error;
};

// Connects to `address` and sends the HELLO of this task. Name resolution, connecting and the
// answer may each take `timeout`; none of them blocks the loop. Callers that retry an address pass
// the same `lookup` each time. `context`, `lookup` and `credentials` must outlive the call, and
// `credentials` the connection. With `credentials` only TLS is used: a peer with other credentials,
// or none, is kRefused.
asio::awaitable<Dialed> dial(asio::io_context& context, Address address, Hello hello,
                             ConnectionLimits limits, std::chrono::milliseconds timeout,
                             NameLookup& lookup, Credentials* credentials = nullptr);

// Callable from any thread; see net/tcp/channel.h for errors and waits.
struct OpenedChannel {
  std::unique_ptr<Channel> channel;  // null unless welcomed
  Welcome welcome;                   // valid when channel is set
  Refusal refusal;                   // valid when error is WireError::kRefused
  std::error_code error;
};

// Connects to `address`, sends the HELLO of this task and waits for the answer, all before
// `deadline`. With `credentials` only TLS is used: a peer with other credentials, or none, is
// kRefused. The caller retries (net/wire/backoff.h); every error but kRefused may be temporary.
[[nodiscard]] OpenedChannel open_channel(const Address& address, const Hello& hello,
                                         const Interrupt& interrupt, Deadline deadline,
                                         Credentials* credentials = nullptr);

// Receives the body of a REFUSED frame whose header was just read. Then closes the channel, as the
// peer does. A body that does not decode yields a stock sentence.
[[nodiscard]] Refusal receive_refusal(Channel& channel, const FrameHeader& header,
                                      Deadline deadline);

// Receives a body of `size` bytes whose header was just read. Memory grows with the bytes that have
// arrived, so a peer that claims more than it sends costs none. REQUIRES: the caller has bounded
// `size`.
[[nodiscard]] std::error_code receive_text(Channel& channel, std::uint64_t size, Deadline deadline,
                                           std::string& text);

}  // namespace disttf::net
