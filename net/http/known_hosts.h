// Which names a server answers to, and which pages may ask it: what keeps the pages of other sites
// from it.
//
// Loopback and a private network are no boundary: any page that somebody has open can send requests
// there, and a site can point a name of its own at such an address (DNS rebinding), so that its
// pages may read the answers. Pure; callable from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "net/http/url.h"

namespace disttf::net {

// "host", "host:port", "[v6]:port", and nothing more than that.
[[nodiscard]] std::optional<Url> read_host(std::string_view scheme, std::string_view text);
// "http://host:port", as browsers write whose page asks; "null" is nobody's.
[[nodiscard]] std::optional<Url> read_origin(std::string_view text);
// The address in a form in which equal ones are equal; empty: it is a name.
[[nodiscard]] std::string address_text(const std::string& host);

// Of a service that programs ask, in a cluster, too: it has no cookies, and no page changes it.
struct ServiceNames {
  // Lower case. "*.example.com" stands for all below it, "*" for any name.
  std::vector<std::string> names = {};
};

// Why a request is refused: nullopt, it may be answered.
//
//   421  Host is a name that this service does not have. It has the given ones, every address,
//        localhost, and names that no site can have: those without a dot (of a container, a
//        machine, a Service of Kubernetes) and those below .svc, .svc.cluster.local and .localhost
//   403  it is to do something (any method but GET, HEAD and OPTIONS) and Origin, which browsers
//        send, is another page than this service's own
[[nodiscard]] std::optional<HttpReply> refuse_other_pages(const HttpServerRequest& request,
                                                          const ServiceNames& names);

}  // namespace disttf::net
