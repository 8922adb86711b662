// The requester's half of the handshake inside an event loop: connect, HELLO, WELCOME, and then the
// connection as its coroutines see it. The synchronous one is net/transport/peer.h.
//
// On the thread that runs the io_context.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <system_error>

#include "net/transport/name_lookup.h"
#include "net/transport/server_connection.h"
#include "net/wire/address.h"
#include "net/wire/handshake.h"

namespace disttf::net {

struct Dialed {
  // Null unless welcomed. Its hello() names the peer as the speaker, so that peer_text() does.
  std::shared_ptr<ServerConnection> connection;
  Welcome welcome;  // valid when connection is set
  Refusal refusal;  // valid when error is WireError::kRefused
  std::error_code error;
};

// Connects to `address` and introduces this task; name, connection and answer may each take
// `timeout`. The loop goes on meanwhile. `lookup` is for whoever tries this address again and
// again. `context`, `lookup` and `credentials` must outlive the call, the last the connection, too.
// With `credentials` by TLS and not otherwise: a peer that has others, or none, is kRefused.
asio::awaitable<Dialed> dial(asio::io_context& context, Address address, Hello hello,
                             ConnectionLimits limits, std::chrono::milliseconds timeout,
                             NameLookup& lookup, Credentials* credentials = nullptr);

}  // namespace disttf::net
