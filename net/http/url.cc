#include "net/http/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <vector>

#include "net/wire/address.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

// Longer than any URL of a file; a Location header could hold much more.
constexpr std::size_t kMaxUrlBytes = 8192;

// Checks the characters of a URL. A blank or a line break would end the request line early and let
// a mirror's redirect inject header fields.
bool is_url_text(std::string_view text, std::string& why) {
  if (text.size() > kMaxUrlBytes) {
    why = "is longer than " + std::to_string(kMaxUrlBytes) + " bytes";
    return false;
  }
  const bool clean = std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
  if (!clean) why = "holds a blank, a control character or one that is not ASCII";
  return clean;
}

bool is_host_name(std::string_view host) {
  if (host.empty() || host.size() > kMaxHostBytes || host.front() == '.') return false;
  if (host.find("..") != std::string_view::npos) return false;
  return std::ranges::all_of(
      host, [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_'; });
}

bool is_ipv6(std::string_view host) {
  std::array<unsigned char, 16> ignored{};
  return inet_pton(AF_INET6, std::string(host).c_str(), ignored.data()) == 1;
}

// Parses "host", "host:port", "[v6]:port".
bool read_authority(std::string_view text, Url& url, std::string& why) {
  // Credentials in a URL would appear in logs and messages.
  if (text.find('@') != std::string_view::npos) {
    why = "carries a user name or password, which is not supported";
    return false;
  }
  std::string_view host = text.substr(0, text.find(':'));
  std::string_view rest = text.substr(host.size());
  const bool bracketed = text.starts_with('[');
  if (bracketed) {
    const std::size_t end = text.find(']');
    host = end == std::string_view::npos ? std::string_view{} : text.substr(1, end - 1);
    rest = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  // A name's last dot only marks it as complete; certificates do not contain it.
  if (!bracketed && host.ends_with('.')) host.remove_suffix(1);
  if (bracketed ? !is_ipv6(host) : !is_host_name(host)) {
    why = host.empty() ? "has no host" : "has no valid host name or address";
    return false;
  }
  // Host names are case-insensitive; lower case makes comparisons exact.
  url.host = to_lower(host);
  url.port = default_port(url.scheme);
  if (rest.empty() || rest == ":") return true;
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + 1, end, url.port);
  if (rest.front() == ':' && error == std::errc{} && stop == end && url.port != 0) return true;
  why = "has no valid port (1 to 65535)";
  return false;
}

// Path and query in wire form, without a fragment.
std::string target_of(std::string_view text) {
  text = text.substr(0, text.find('#'));
  std::string target = text.starts_with('/') ? "" : "/";
  return target.append(text);
}

// RFC 3986 section 5.2.4, on an absolute path without query.
std::string remove_dot_segments(std::string_view path) {
  std::vector<std::string_view> kept;
  bool ends_in_slash = false;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    ends_in_slash = segment == "." || segment == ".." || segment.empty();
    if (segment == ".." && !kept.empty()) kept.pop_back();
    const bool is_inner_blank = segment.empty() && !path.empty();
    if (is_inner_blank || !ends_in_slash) kept.push_back(segment);
  }
  std::string result;
  for (const std::string_view segment : kept) result.append("/").append(segment);
  return ends_in_slash ? result + "/" : result;
}

// The host in the form for URLs.
std::string bracketed(const std::string& host) {
  if (host.find(':') == std::string::npos) return host;
  std::string result = "[";
  return result.append(host).append("]");
}

bool has_scheme(std::string_view reference) {
  // A colon after a slash or question mark is part of a path and not the end of a scheme.
  const std::size_t colon = reference.find_first_of(":/?");
  return colon != std::string_view::npos && reference[colon] == ':' && is_letter(reference.front());
}

}  // namespace

std::string_view scheme_name(Scheme scheme) noexcept {
  return scheme == Scheme::kHttps ? "https" : "http";
}

std::uint16_t default_port(Scheme scheme) noexcept { return scheme == Scheme::kHttps ? 443 : 80; }

std::string authority(const Url& url) {
  return url.port == default_port(url.scheme) ? bracketed(url.host) : host_and_port(url);
}

std::string host_and_port(const Url& url) {
  return bracketed(url.host) + ":" + std::to_string(url.port);
}

std::string to_string(const Url& url) {
  return std::string(scheme_name(url.scheme)) + "://" + authority(url) + url.target;
}

std::optional<Url> read_url(std::string_view text, std::string& why) {
  if (!is_url_text(text, why)) return std::nullopt;
  const std::size_t mark = text.find("://");
  const std::string scheme = to_lower(text.substr(0, mark));
  if (mark == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    why = "does not begin with http:// or https://";
    return std::nullopt;
  }
  Url url;
  url.scheme = scheme == "https" ? Scheme::kHttps : Scheme::kHttp;
  const std::string_view rest = text.substr(mark + 3);
  const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  if (!read_authority(host, url, why)) return std::nullopt;
  url.target = target_of(rest.substr(host.size()));
  return url;
}

Url parse_url(std::string_view field, std::string_view text) {
  std::string why;
  if (std::optional<Url> url = read_url(text, why)) return *std::move(url);
  throw std::invalid_argument(std::string(field) + ": " + net::quoted(text) + " " + why +
                              "; expected a URL like https://host[:port]/path/");
}

std::optional<Url> join_url(const Url& base, std::string_view reference, std::string& why) {
  if (!is_url_text(reference, why)) return std::nullopt;
  // A fragment is only for the client and is not sent.
  reference = reference.substr(0, reference.find('#'));
  if (reference.empty()) return base;
  if (has_scheme(reference)) return read_url(reference, why);
  // A reference without a scheme keeps the base's.
  if (reference.starts_with("//")) {
    return read_url(std::string(scheme_name(base.scheme)) + ":" + std::string(reference), why);
  }
  const std::string_view base_path = std::string_view(base.target).substr(0, base.target.find('?'));
  const std::string_view path = reference.substr(0, reference.find('?'));
  const std::string_view query = reference.substr(path.size());
  Url url = base;
  if (path.empty()) {
    url.target = std::string(base_path);
  } else if (path.starts_with('/')) {
    url.target = remove_dot_segments(path);
  } else {
    const std::string_view folder = base_path.substr(0, base_path.rfind('/') + 1);
    url.target = remove_dot_segments(std::string(folder) + std::string(path));
  }
  url.target += query;
  return url;
}

}  // namespace disttf::net
