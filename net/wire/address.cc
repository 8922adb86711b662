#include "net/wire/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <stdexcept>

#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::size_t kMaxLabelBytes = 63;  // between two dots
constexpr std::string_view kGrpcScheme = "grpc://";
constexpr std::string_view kExpected = "expected host:port, e.g. ps0:2222 or [::1]:2222";

// ASCII only: the same result in every locale.
[[nodiscard]] bool is_name_character(char c) noexcept {
  return is_digit(c) || is_letter(c) || c == '-' || c == '_';
}

// The canonical text, so that equal addresses have equal text; nullopt: no address.
[[nodiscard]] std::optional<std::string> canonical_ip(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> binary{};
  std::array<char, INET6_ADDRSTRLEN> out{};
  if (::inet_pton(family, text.c_str(), binary.data()) != 1) return std::nullopt;
  if (::inet_ntop(family, binary.data(), out.data(), out.size()) == nullptr) return std::nullopt;
  return std::string(out.data());
}

// One dot at the end is allowed: it makes the name absolute.
[[nodiscard]] bool is_name(std::string_view name) noexcept {
  if (!name.empty() && name.back() == '.') name.remove_suffix(1);
  if (name.empty() || name.size() > kMaxHostBytes) return false;
  while (true) {
    const std::size_t dot = name.find('.');
    const std::string_view label = name.substr(0, dot);
    if (label.empty() || label.size() > kMaxLabelBytes || label.front() == '-' ||
        label.back() == '-' || !std::all_of(label.begin(), label.end(), is_name_character)) {
      return false;
    }
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

// No name ends in a label of digits only (RFC 1123, 2.1), so such a host must be IPv4.
[[nodiscard]] bool looks_like_ipv4(std::string_view host) noexcept {
  const std::size_t dot = host.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? host : host.substr(dot + 1);
  return !last.empty() && std::all_of(last.begin(), last.end(), is_digit);
}

// Error messages about one entry of one field.
class Entry {
 public:
  Entry(std::string_view field, std::string_view text) : field_(field), text_(text) {}

  [[noreturn]] void fail(std::string_view what) const {
    throw std::invalid_argument(std::string(field_) + ": " + net::quoted(text_) + " " +
                                std::string(what) + "; " + std::string(kExpected));
  }

  [[nodiscard]] std::string host(std::string_view host) const {
    if (host.empty()) fail("has no host");
    if (host.front() == '[') {
      if (host.back() != ']') fail("has no ']' right before the port");
      const std::string inner(host.substr(1, host.size() - 2));
      const std::optional<std::string> ip = canonical_ip(AF_INET6, inner);
      if (!ip) fail("has no valid IPv6 address between the brackets");
      return *ip;
    }
    if (host.find(':') != std::string_view::npos) {
      fail("has more than one colon (an IPv6 address needs brackets)");
    }
    if (looks_like_ipv4(host)) {
      const std::optional<std::string> ip = canonical_ip(AF_INET, std::string(host));
      if (!ip) fail("is not a valid IPv4 address");
      return *ip;
    }
    if (!is_name(host)) fail("has no valid host name");
    // Names are case-insensitive. One spelling makes equal addresses equal in the cluster's hash.
    return to_lower(host);
  }

  [[nodiscard]] std::uint16_t port(std::string_view digits) const {
    std::uint16_t value = 0;
    const char* end = digits.data() + digits.size();
    // Accepts no sign and no blanks. A value above 65535 is an error of its own.
    const auto [parsed, error] = std::from_chars(digits.data(), end, value);
    if (digits.empty() || error != std::errc{} || parsed != end || value == 0) {
      fail("has no port between 1 and 65535");
    }
    return value;
  }

 private:
  std::string_view field_;
  std::string_view text_;
};

}  // namespace

std::string to_string(const Address& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string to_string(const std::vector<Address>& addresses) {
  return joined(addresses, ",", [](const Address& address) { return to_string(address); });
}

Address parse_address(std::string_view field, std::string_view text) {
  text = trim(text);
  const Entry entry(field, text);
  if (text.empty()) entry.fail("is empty");
  std::string_view rest = text;
  // TensorFlow writes its targets with this scheme, which has no meaning here.
  if (to_lower(rest.substr(0, kGrpcScheme.size())) == kGrpcScheme)
    rest.remove_prefix(kGrpcScheme.size());
  const std::size_t colon = rest.rfind(':');
  // A colon inside the brackets belongs to the IPv6 address.
  const std::size_t bracket = rest.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) {
    entry.fail("has no port");
  }
  Address address;
  address.host = entry.host(rest.substr(0, colon));
  address.port = entry.port(rest.substr(colon + 1));
  return address;
}

std::vector<Address> parse_address_list(std::string_view field, std::string_view text) {
  std::vector<Address> addresses;
  // An empty list is valid here; validate() rejects it where the job needs a task.
  if (trim(text).empty()) return addresses;
  while (true) {
    const std::size_t comma = text.find(',');
    if (trim(text.substr(0, comma)).empty()) {
      throw std::invalid_argument(std::string(field) + ": entry " +
                                  std::to_string(addresses.size() + 1) + " is empty; " +
                                  std::string(kExpected) + ", separated by single commas");
    }
    addresses.push_back(parse_address(field, text.substr(0, comma)));
    if (comma == std::string_view::npos) return addresses;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace disttf::net
