// Names to endpoints, with a deadline that holds.
#pragma once

#include <asio/ip/tcp.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "net/transport/interrupt.h"
#include "net/transport/lookup.h"
#include "net/wire/address.h"

namespace disttf::net {

// Every endpoint of the address, in the resolver's order, looked up anew on each call (a restarted
// task may have a new one). Numeric hosts and "localhost" (127.0.0.1, then ::1) need no resolver
// and no file. Any other name costs a detached thread, since getaddrinfo cannot be interrupted:
// when the deadline or the interrupt comes first, the thread is left behind with data of its own
// and ends when the resolver gives up (glibc: within about half a minute). Where the answer for one
// family of addresses is missing, that for the other is used after a second (see lookup.h). `ask`
// replaces getaddrinfo in tests.
// Empty, and `error` set, when there is none. Callable from any thread.
[[nodiscard]] std::vector<asio::ip::tcp::endpoint> resolve(const Address& address,
                                                           const Interrupt& interrupt,
                                                           Deadline deadline,
                                                           std::error_code& error, Ask ask = {});

// "10.0.0.7:51312", "[fe80::1]:51312"; an IPv4 address as one, also where it came mapped into IPv6.
[[nodiscard]] std::string endpoint_text(const asio::ip::tcp::endpoint& endpoint);
// The same of the other end of this connection; "a peer that has gone".
[[nodiscard]] std::string peer_endpoint_text(int socket);

}  // namespace disttf::net
