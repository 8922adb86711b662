// Protects a server from the pages of other sites: which Host names it accepts, and which origins.
//
// Loopback and a private network are no boundary: any open page can send requests there, and a site
// can point one of its names at such an address (DNS rebinding), so that its pages may read the
// answers. Pure; callable from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "net/http/url.h"

namespace disttf::net {

// Parses "host", "host:port" or "[v6]:port", and nothing else.
[[nodiscard]] std::optional<Url> read_host(std::string_view scheme, std::string_view text);
// Parses "http://host:port", the origin of a page; "null" is rejected.
[[nodiscard]] std::optional<Url> read_origin(std::string_view text);
// The canonical text of an address; empty: the host is a name.
[[nodiscard]] std::string address_text(const std::string& host);

// For a service that programs call, also within a cluster: it has no cookies, and no page may
// change it.
struct ServiceNames {
  // Lower case. "*.example.com" matches all names below it, "*" any name.
  std::vector<std::string> names = {};
};

// Returns a refusal, or nullopt if the request may be answered.
//
//   421  Host is a name that this service does not have. It has the given names, every address,
//        localhost, and names that no site can have: those without a dot (of a container, a
//        machine, a Kubernetes Service) and those below .svc, .svc.cluster.local and .localhost
//   403  it changes something (any method but GET, HEAD and OPTIONS), and Origin, which browsers
//        send, is another page than this service's own
[[nodiscard]] std::optional<HttpReply> refuse_other_pages(const HttpServerRequest& request,
                                                          const ServiceNames& names);

}  // namespace disttf::net
