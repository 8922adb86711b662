// host:port of a task, as --ps_hosts, --worker_hosts and TF_CONFIG carry it.
//
// Pure values and functions; callable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::net {

struct Address {
  std::string host;  // name, IPv4, or IPv6 without brackets; lower case
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
  friend auto operator<=>(const Address&, const Address&) = default;
};

// "host:port", IPv6 as "[::1]:2222".
[[nodiscard]] std::string to_string(const Address& address);

// Throws std::invalid_argument with one sentence naming the text and what is allowed.
[[nodiscard]] Address parse_address(std::string_view text);
// Comma separated; empty text is an empty list. Throws like parse_address.
[[nodiscard]] std::vector<Address> parse_address_list(std::string_view text);

}  // namespace disttf::net
