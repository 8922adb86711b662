// TCP between two tasks of one host.
//
// Who listens at a loopback address is reached by nobody else. And nothing is congested there, and
// a congestion control that paces what is sent, as BBR does, which some hosts have as their
// default, only makes it wait: 40 MB each way took 35 ms with BBR, and 21 with Reno, which every
// kernel has, everybody may ask for, and which paces nothing. Networks keep what the host has.
#pragma once

#include <asio/ip/tcp.hpp>
#include <string_view>

namespace disttf::net {

[[nodiscard]] bool is_loopback(const asio::ip::address& address) noexcept;
// A host as address lists have them, which each machine takes for itself: localhost, 127.0.0.0/8,
// ::1. Other names are not looked up: they are of other machines, until somebody knows better.
[[nodiscard]] bool is_loopback_host(std::string_view host) noexcept;

// Best before connect() or listen(): what has been paced once keeps a timer. Accepted sockets have
// what their listener has. Failing changes nothing but the speed, and is not told.
void send_unpaced(int socket) noexcept;

}  // namespace disttf::net
