// At which address another process of this machine answers: from the kernel's table of sockets, or
// from the flags of `disttf serve`.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "net/wire/address.h"

namespace disttf::roles {

// The address of the first listening socket of `table`, the text of /proc/PID/net/tcp or tcp6 as in
// proc(5), whose inode is one of `inodes`. A wildcard address becomes a loopback address, to which
// a client can connect. nullopt: there is none.
[[nodiscard]] std::optional<net::Address> listening_address(std::string_view table,
                                                            const std::set<std::string>& inodes);

// The host to connect to for a service with the flag `--host=host`: an IP address or "all".
[[nodiscard]] std::string host_to_connect_to(const std::string& host);

}  // namespace disttf::roles
