// Chooses the proxy of a download, if any: http_proxy, https_proxy, all_proxy and no_proxy, with
// the rules of curl and wget.
//
// main reads the environment and passes the values. Pure functions; callable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http/url.h"

namespace disttf::net {

// The variables' values, unchanged; empty: not set.
struct ProxySettings {
  std::string http_proxy{};   // for http URLs
  std::string https_proxy{};  // for https URLs
  std::string all_proxy{};    // for both, where the one above is not set
  std::string no_proxy{};     // hosts without a proxy, comma separated
};

// A proxy with plain http; https uses a CONNECT tunnel through it.
struct Proxy {
  std::string host;  // as Url::host
  std::uint16_t port = 0;
  std::string authorization{};  // value of Proxy-Authorization; empty: none
  friend bool operator==(const Proxy&, const Proxy&) = default;
};

// nullopt: connect directly. Throws std::invalid_argument with one sentence that names the variable
// if the one that applies is malformed; the sentence does not repeat a password in it.
[[nodiscard]] std::optional<Proxy> choose_proxy(const ProxySettings& settings, const Url& url);

// Whether no_proxy covers the host. Entries: "*" (all), a name (itself and every name below it; a
// leading dot or "*." has no effect), an IP address, a network as address/bits. All but "*" and
// networks may end in ":port", which restricts them to that port. Other entries match nothing.
[[nodiscard]] bool bypasses_proxy(std::string_view no_proxy, const Url& url);

}  // namespace disttf::net
