// Which proxy, if any, a download goes through: the rules of http_proxy, https_proxy, all_proxy
// and no_proxy, as curl and wget read them.
//
// main reads the environment and hands the values in. Pure functions; callable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/http/url.h"

namespace disttf::net {

// The variables' values as they are; empty: not set.
struct ProxySettings {
  std::string http_proxy{};   // for http URLs
  std::string https_proxy{};  // for https URLs
  std::string all_proxy{};    // for both, where the one above is not set
  std::string no_proxy{};     // hosts reached directly, comma separated
};

// A proxy that is spoken to in plain http; https goes through it in a CONNECT tunnel.
struct Proxy {
  std::string host;  // as Url::host
  std::uint16_t port = 0;
  std::string authorization{};  // value of Proxy-Authorization; empty: none
  friend bool operator==(const Proxy&, const Proxy&) = default;
};

// nullopt: go there directly. Throws std::invalid_argument with one sentence naming the variable
// when the one that applies is malformed; a password in it is not repeated.
[[nodiscard]] std::optional<Proxy> choose_proxy(const ProxySettings& settings, const Url& url);

// Whether no_proxy covers the host. Entries: "*" (all), a name (itself and every name below it; a
// leading dot or "*." changes nothing), an IP address, a network as address/bits; each but "*" and
// a network may end in ":port" and then means that port alone. Entries that are none of these match
// nothing.
[[nodiscard]] bool bypasses_proxy(std::string_view no_proxy, const Url& url);

}  // namespace disttf::net
