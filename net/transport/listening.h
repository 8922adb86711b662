// Sockets that listen: where, and whose.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

#include "net/wire/address.h"

namespace disttf::net {

enum class ListenScope : std::uint8_t {
  kEverywhere,  // [::] with IPv4 mapped in; 0.0.0.0 where the machine has no IPv6
  kLoopback,    // 127.0.0.1
};

// A listening socket with SO_REUSEADDR; port 0 lets the system choose (see local_endpoint()).
// Throws std::system_error: "cannot listen on port 2222: Address already in use".
[[nodiscard]] asio::ip::tcp::acceptor listen_on(asio::io_context& context, std::uint16_t port,
                                                ListenScope scope = ListenScope::kEverywhere);
// The same at one address of this machine: an IP address, or kEveryAddress. REQUIRES: one of both.
[[nodiscard]] asio::ip::tcp::acceptor listen_at(asio::io_context& context, const std::string& host,
                                                std::uint16_t port);
inline constexpr const char* kEveryAddress = "all";
// The same where the others look for a task by this entry of the lists: at its loopback address
// alone, if that is what it says, since nobody elsewhere is to get there; else on all interfaces,
// as its name may mean any of them.
[[nodiscard]] asio::ip::tcp::acceptor listen_as(asio::io_context& context, const Address& listed);

// Takes over a socket that another process opened and set to listen (`launch`). Owns `fd` from
// here on, also when it throws std::system_error (not a listening TCP socket).
[[nodiscard]] asio::ip::tcp::acceptor adopt_listening(asio::io_context& context, int fd);

}  // namespace disttf::net
