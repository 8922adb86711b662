// Name resolution with a deadline that holds.
#pragma once

#include <asio/ip/tcp.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "net/tcp/lookup.h"
#include "net/waiting/interrupt.h"
#include "net/wire/address.h"

namespace disttf::net {

// Returns every endpoint of the address, in the resolver's order. Looks the name up on each call,
// because a restarted task may have a new address. Numeric hosts and "localhost" (127.0.0.1, then
// ::1) need no resolver and no file. Any other name needs a detached thread, because getaddrinfo
// cannot be interrupted. At the deadline or the interrupt the thread is left behind with its own
// data and ends when the resolver returns (glibc: within about half a minute). If the answer for
// one address family is missing, the other one's is used after a second (see lookup.h). `ask`
// replaces getaddrinfo in tests.
// Empty, and `error` set, when there is none. Callable from any thread.
[[nodiscard]] std::vector<asio::ip::tcp::endpoint> resolve(const Address& address,
                                                           const Interrupt& interrupt,
                                                           Deadline deadline,
                                                           std::error_code& error, Ask ask = {});

// "10.0.0.7:51312", "[fe80::1]:51312". An IPv4 address that is mapped into IPv6 is written as IPv4.
[[nodiscard]] std::string endpoint_text(const asio::ip::tcp::endpoint& endpoint);
// The text of the other end of this connection, or "a peer that has gone".
[[nodiscard]] std::string peer_endpoint_text(int socket);

}  // namespace disttf::net
