// TCP between two tasks of one host.
//
// A loopback listener is reachable only from its own host, and its connections have no congestion.
// A congestion control that paces what is sent, such as BBR, which is the default of some hosts,
// only adds delay there: 40 MB each way took 35 ms with BBR and 21 ms with Reno. Every kernel has
// Reno, every user may select it, and it does not pace. Connections over networks keep the host's
// default.
#pragma once

#include <asio/ip/tcp.hpp>
#include <string_view>

namespace disttf::net {

[[nodiscard]] bool is_loopback(const asio::ip::address& address) noexcept;
// Whether an address list's host name means the machine itself on each machine: localhost,
// 127.0.0.0/8, ::1. Other names are not resolved and count as other machines.
[[nodiscard]] bool is_loopback_host(std::string_view host) noexcept;

// Selects an unpaced congestion control. Call it before connect() or listen(): a socket that was
// paced once keeps a timer. Accepted sockets inherit from their listener. A failure affects only
// the speed and is not reported.
void send_unpaced(int socket) noexcept;

}  // namespace disttf::net
