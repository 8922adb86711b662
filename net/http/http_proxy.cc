#include "net/http/http_proxy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "net/wire/base64.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

// An address's bytes in network order: 4 or 16 of them, or none for a name.
struct IpBytes {
  std::array<unsigned char, 16> bytes{};
  std::size_t size = 0;
};

IpBytes ip_bytes(const std::string& text) {
  IpBytes ip;
  if (inet_pton(AF_INET, text.c_str(), ip.bytes.data()) == 1) {
    ip.size = 4;
  } else if (inet_pton(AF_INET6, text.c_str(), ip.bytes.data()) == 1) {
    ip.size = 16;
  }
  return ip;
}

bool same_prefix(const IpBytes& a, const IpBytes& b, std::uint64_t bits) {
  if (a.size == 0 || a.size != b.size || bits > a.size * 8) return false;
  for (std::size_t i = 0; i < a.size && i * 8 < bits; ++i) {
    const auto left = static_cast<unsigned>(std::min<std::size_t>(bits - i * 8, 8));
    const unsigned mask = 0xffU << (8U - left);
    if (((a.bytes[i] ^ b.bytes[i]) & mask) != 0) return false;
  }
  return true;
}

bool matches_name(std::string_view entry, std::string_view host) {
  // "*.example.org", ".example.org" and "example.org" mean the same.
  if (entry.starts_with('*')) entry.remove_prefix(1);
  if (entry.starts_with('.')) entry.remove_prefix(1);
  if (entry.empty() || !host.ends_with(entry)) return false;
  return host.size() == entry.size() || host[host.size() - entry.size() - 1] == '.';
}

bool matches(std::string_view entry, const Url& url) {
  if (entry == "*") return true;
  const IpBytes host = ip_bytes(url.host);
  if (const std::size_t slash = entry.find('/'); slash != std::string_view::npos) {
    const auto bits = whole_number(entry.substr(slash + 1));
    // A range matches numeric hosts only, because names are not resolved for this check.
    return bits && same_prefix(host, ip_bytes(std::string(entry.substr(0, slash))), *bits);
  }
  // "[v6]", "[v6]:port", "name:port"; a bare IPv6 address has more than one colon.
  std::string_view name = entry;
  std::string_view port;
  if (entry.starts_with('[')) {
    name = entry.substr(1, entry.find(']') - 1);
    port = entry.substr(std::min(entry.size(), name.size() + 2));
  } else if (std::ranges::count(entry, ':') == 1) {
    name = entry.substr(0, entry.find(':'));
    port = entry.substr(name.size());
  }
  if (!port.empty() && whole_number(port.substr(1)) != url.port) return false;
  const IpBytes address = ip_bytes(std::string(name));
  if (address.size != 0) return same_prefix(host, address, address.size * 8);
  // Names match by suffix, which has no meaning for an address.
  return host.size == 0 && matches_name(name, url.host);
}

// Special characters of a password are percent-encoded in the variable.
std::string percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                        hex_digit(text[i + 2]) >= 0;
    if (escape) {
      result += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

Proxy parse_proxy(std::string_view variable, std::string_view value) {
  const std::size_t mark = value.find("://");
  std::string_view rest = mark == std::string_view::npos ? value : value.substr(mark + 3);
  const std::string_view scheme = mark == std::string_view::npos ? "http" : value.substr(0, mark);
  std::string authorization;
  // The last one, because a password may contain another that is not percent-encoded.
  const std::size_t at = rest.substr(0, rest.find_first_of("/?#")).rfind('@');
  if (at != std::string_view::npos) {
    authorization = "Basic " + base64(percent_decoded(rest.substr(0, at)));
    rest.remove_prefix(at + 1);
  }
  std::string why;
  // Without the credentials, because messages show this text.
  const std::string bare = std::string(scheme) + "://" + std::string(rest);
  const std::optional<Url> url = read_url(bare, why);
  if (!url || url->scheme != Scheme::kHttp) {
    if (url || why.starts_with("does not begin")) why = "is not a plain http proxy";
    throw std::invalid_argument(std::string(variable) + ": the proxy \"" + bare + "\" " + why +
                                "; expected http://[user:password@]host:port");
  }
  return {.host = url->host, .port = url->port, .authorization = std::move(authorization)};
}

}  // namespace

bool bypasses_proxy(std::string_view no_proxy, const Url& url) {
  while (!no_proxy.empty()) {
    const std::string_view entry = no_proxy.substr(0, no_proxy.find(','));
    no_proxy.remove_prefix(std::min(no_proxy.size(), entry.size() + 1));
    std::string lower(trim(entry));
    std::ranges::transform(lower, lower.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (!lower.empty() && matches(lower, url)) return true;
  }
  return false;
}

std::optional<Proxy> choose_proxy(const ProxySettings& settings, const Url& url) {
  const bool https = url.scheme == Scheme::kHttps;
  std::string_view variable = https ? "https_proxy" : "http_proxy";
  std::string_view value = trim(https ? settings.https_proxy : settings.http_proxy);
  if (value.empty()) {
    variable = "all_proxy";
    value = trim(settings.all_proxy);
  }
  // The bypass comes before parsing, so a malformed proxy matters only where it would be used.
  if (value.empty() || bypasses_proxy(settings.no_proxy, url)) return std::nullopt;
  return parse_proxy(variable, value);
}

}  // namespace disttf::net
