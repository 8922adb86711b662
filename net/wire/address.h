// host:port of a task, as in --ps_hosts, --worker_hosts and TF_CONFIG.
//
//   entry = ["grpc://"] host ":" port
//   host  = name | IPv4 | "[" IPv6 "]"      name: letters, digits, '-', '_', '.', at most 253 bytes
//   port  = 1..65535, decimal
//
// Whitespace around an entry is ignored; names are lower-cased. Every error is a
// std::invalid_argument whose what() is one sentence: field, value, what is allowed.
//
// Pure values and functions; callable from any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::net {

inline constexpr std::size_t kMaxHostBytes = 253;  // of a whole host name, RFC 1123 and RFC 1035

struct Address {
  std::string host;  // name, IPv4, or IPv6 without brackets; lower case
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
  friend auto operator<=>(const Address&, const Address&) = default;
};

// "host:port", IPv6 as "[::1]:2222".
[[nodiscard]] std::string to_string(const Address& address);
// The list in the form of a flag: "host:port,host:port".
[[nodiscard]] std::string to_string(const std::vector<Address>& addresses);

// Parses one entry. `field` names the source of the text ("--ps_hosts", "TF_CONFIG.cluster.ps[0]")
// and begins the message. Throws std::invalid_argument.
[[nodiscard]] Address parse_address(std::string_view field, std::string_view text);
// Parses a comma-separated list. Blank text is an empty list; an empty entry between commas is an
// error.
[[nodiscard]] std::vector<Address> parse_address_list(std::string_view field,
                                                      std::string_view text);

}  // namespace disttf::net
