// http and https URLs, as in --data_url, a proxy variable and a Location header.
//
// Only what a download needs: scheme, host, port, path with query. A fragment is dropped, because
// it is never sent; a user name or password is rejected. Pure functions; callable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace disttf::net {

enum class Scheme : std::uint8_t { kHttp, kHttps };

struct Url {
  Scheme scheme = Scheme::kHttp;
  std::string host;          // name, IPv4, or IPv6 without brackets; lower case
  std::uint16_t port = 80;   // never 0
  std::string target = "/";  // path and query in wire form; starts with '/'
  friend bool operator==(const Url&, const Url&) = default;
};

// "http" or "https".
[[nodiscard]] std::string_view scheme_name(Scheme scheme) noexcept;
// 80 or 443.
[[nodiscard]] std::uint16_t default_port(Scheme scheme) noexcept;
// host:port as it follows "//": IPv6 in brackets, without the scheme's default port.
[[nodiscard]] std::string authority(const Url& url);
// host:port, always with the port: the form for CONNECT.
[[nodiscard]] std::string host_and_port(const Url& url);
// The URL in normal form: parse_url(to_string(url)) returns url again.
[[nodiscard]] std::string to_string(const Url& url);

// For text from outside (a Location header). nullopt: `why` is half a sentence ("has no host") to
// follow the name and value of the text.
[[nodiscard]] std::optional<Url> read_url(std::string_view text, std::string& why);
// For text from a user: throws std::invalid_argument with one sentence that names the field
// (`--data_url`), the value and what is allowed.
[[nodiscard]] Url parse_url(std::string_view field, std::string_view text);

// Resolves `reference`, absolute or relative, against `base` (RFC 3986 section 5). Errors as
// read_url.
[[nodiscard]] std::optional<Url> join_url(const Url& base, std::string_view reference,
                                          std::string& why);

}  // namespace disttf::net
