// Host name -> TCP endpoints, with a deadline and an interrupt that hold even while the system's
// resolver hangs.
#pragma once

#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "net/channel.h"

namespace disttf::net {

// Fills `out` with every address of `host` in the order in which to try them; it is not empty on
// success. Numeric addresses (IPv6 without brackets) and "localhost" (127.0.0.1, then ::1) need no
// resolver and no file. Anything else is looked up anew on each call.
// Errors: what getaddrinfo says (asio::error::host_not_found, ...), std::errc::timed_out,
// std::errc::operation_canceled (interrupt). Callable from any thread.
//
// getaddrinfo cannot be stopped, so it runs on a thread of its own that is left behind when the
// caller gives up; it owns all it touches and ends when the resolver does.
[[nodiscard]] std::error_code resolve(const std::string& host, std::uint16_t port,
                                      const Interrupt& interrupt, Deadline deadline,
                                      std::vector<asio::ip::tcp::endpoint>& out);

}  // namespace disttf::net
