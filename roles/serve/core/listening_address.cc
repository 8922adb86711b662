#include "roles/serve/core/listening_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <sstream>
#include <vector>

namespace disttf::roles {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kHexadecimal = 16;
constexpr std::size_t kWordDigits = 8;

// The four bytes that the table shows as one number in this processor's byte order.
bool read_word(std::string_view digits, unsigned char* bytes) {
  std::uint32_t word = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, word, kHexadecimal);
  if (error != std::errc{} || stop != end) return false;
  std::memcpy(bytes, &word, sizeof word);
  return true;
}

// "0100007F" -> "127.0.0.1"; 32 digits are an IPv6 address. Empty: neither.
std::string host_of(std::string_view digits) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const bool is_v6 = digits.size() == 4 * kWordDigits;
  if (!is_v6 && digits.size() != kWordDigits) return {};
  for (std::size_t at = 0; at < digits.size(); at += kWordDigits) {
    if (!read_word(digits.substr(at, kWordDigits), &bytes.at(at / 2))) return {};
  }
  // Also of IPv6: disttf accepts IPv4 at the wildcard, and a container may have no IPv6 loopback.
  if (std::ranges::all_of(bytes, [](unsigned char byte) { return byte == 0; })) return kLoopback;
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* const host =
      ::inet_ntop(is_v6 ? AF_INET6 : AF_INET, bytes.data(), text.data(), text.size());
  return host == nullptr ? std::string() : host;
}

}  // namespace

std::optional<net::Address> listening_address(std::string_view table,
                                              const std::set<std::string>& inodes) {
  constexpr std::size_t kAddress = 1;
  constexpr std::size_t kState = 3;
  constexpr std::size_t kInode = 9;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream rest(line);
    const std::vector<std::string> words{std::istream_iterator<std::string>(rest), {}};
    // 0A: the socket listens.
    if (words.size() <= kInode || words[kState] != "0A" || !inodes.contains(words[kInode])) {
      continue;
    }
    // Both parts are hexadecimal, so the only colon separates address and port.
    const std::string_view local = words[kAddress];
    const std::size_t colon = std::min(local.find(':'), local.size() - 1);
    net::Address address{.host = host_of(local.substr(0, colon))};
    const char* const end = local.data() + local.size();
    const auto [stop, error] =
        std::from_chars(local.data() + colon + 1, end, address.port, kHexadecimal);
    if (!address.host.empty() && error == std::errc{} && stop == end) return address;
  }
  return std::nullopt;
}

std::string host_to_connect_to(const std::string& host) {
  const bool is_any = host == "all" || host == "0.0.0.0" || host == "::";
  // A wildcard is no address to connect to; loopback is always one of its addresses.
  return is_any ? kLoopback : host;
}

}  // namespace disttf::roles
