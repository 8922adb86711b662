// The requester's half of the handshake as a coroutine: connect, HELLO, WELCOME, and then the
// connection for other coroutines. The synchronous variant is net/tcp/peer.h.
//
// Runs on the thread that runs the io_context.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <system_error>

#include "net/tcp/name_lookup.h"
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

}  // namespace disttf::net
