// Listening sockets, and whether the two ends of a connection are on one host.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/wire/address.h"

namespace disttf::net {

enum class ListenScope : std::uint8_t {
  kEverywhere,  // [::] with IPv4 mapped in; 0.0.0.0 where the machine has no IPv6
  kLoopback,    // 127.0.0.1
};

// Returns a listening socket with SO_REUSEADDR; port 0 lets the system choose (see
// local_endpoint()). Throws std::system_error: "cannot listen on port 2222: Address already in
// use".
[[nodiscard]] asio::ip::tcp::acceptor listen_on(asio::io_context& context, std::uint16_t port,
                                                ListenScope scope = ListenScope::kEverywhere);
// The same at one address of this machine. REQUIRES: `host` is an IP address or kEveryAddress.
[[nodiscard]] asio::ip::tcp::acceptor listen_at(asio::io_context& context, const std::string& host,
                                                std::uint16_t port);
inline constexpr const char* kEveryAddress = "all";
// The same for the address at which other tasks look for this one in the lists. A loopback address
// is used as it is, so that other machines cannot connect. A name may mean any interface, so the
// socket then listens on all of them.
[[nodiscard]] asio::ip::tcp::acceptor listen_as(asio::io_context& context, const Address& listed);

// Adopts a socket that another process opened and set to listen (`launch`). Owns `fd` from here on,
// even when it throws std::system_error (not a listening TCP socket).
[[nodiscard]] asio::ip::tcp::acceptor adopt_listening(asio::io_context& context, int fd);

// TCP between two tasks of one host.
//
// A loopback listener is reachable only from its own host, and its connections have no congestion.
// A congestion control that paces what is sent, such as BBR, which is the default of some hosts,
// only adds delay there: 40 MB each way took 35 ms with BBR and 21 ms with Reno. Every kernel has
// Reno, every user may select it, and it does not pace. Connections over networks keep the host's
// default.
[[nodiscard]] bool is_loopback(const asio::ip::address& address) noexcept;
// Whether an address list's host name means the machine itself on each machine: localhost,
// 127.0.0.0/8, ::1. Other names are not resolved and count as other machines.
[[nodiscard]] bool is_loopback_host(std::string_view host) noexcept;

// Selects an unpaced congestion control. Call it before connect() or listen(): a socket that was
// paced once keeps a timer. Accepted sockets inherit from their listener. A failure affects only
// the speed and is not reported.
void send_unpaced(int socket) noexcept;

}  // namespace disttf::net
