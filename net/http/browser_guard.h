// Access control for addresses that browsers reach, and the security fields of the replies.
//
// Loopback is no boundary: any open page can send requests there, and a name whose owner points it
// at 127.0.0.1 makes them look as if they came from this page. Therefore, in this order:
//
//   Host      must be an address or a name of this page, else 421, before anything is routed
//   ?token=   of the printed link: exchanged once for a cookie, and redirected to the page
//   reading   of open paths: always allowed, or with a token if there is a token file, or with the
//             cookie; else 401
//   the rest  with any method: needs the cookie, else 401; for more than reading also the Origin
//             of the page itself, else 403
//
// Every reply gets fields that prevent framing, content sniffing and leaking of its contents. Only
// decides, and has no socket; use by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/access_tokens.h"
#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "net/http/url.h"

namespace disttf::net {

struct BrowserAccess {
  // The value of the cookie. REQUIRES: not empty, and not guessable: 128 bits as hexadecimal
  // digits.
  std::string secret;
  // Cookies are shared by all ports of a host, so each page has its own cookie name.
  std::string cookie;
  // The address that the page listens on; "0.0.0.0" and "::" mean every address. A name is never
  // accepted because of its address: who owns the name is unknown here.
  std::string address = "127.0.0.1";
  // Names of the page besides localhost, such as a reverse proxy's, lower case.
  std::vector<std::string> names = {};
  bool is_https = false;  // then browsers send the cookie only over https
  // The paths that every client may read, or every client with one of the tokens.
  std::function<bool(std::string_view path)> is_open;
  std::shared_ptr<AccessTokens> tokens = nullptr;  // null: no token needed
};

class BrowserGuard {
 public:
  explicit BrowserGuard(BrowserAccess access);

  // Adds the token of a link, which is valid for one cookie. Forgets the oldest of more than
  // kMaxLinks.
  static constexpr std::size_t kMaxLinks = 8;
  void add_link(std::string token);

  // nullopt: the request may be answered, and may_change is set. Otherwise the reply to it.
  [[nodiscard]] std::optional<HttpReply> check(HttpServerRequest& request);

  // Adds the security fields that every reply has.
  static void seal(HttpReply& reply);

 private:
  [[nodiscard]] bool is_known_host(std::string_view host) const;
  [[nodiscard]] bool is_own_origin(const HttpServerRequest& request) const;
  [[nodiscard]] bool has_cookie(std::string_view cookies) const;
  [[nodiscard]] HttpReply follow_link(std::string_view token);

  BrowserAccess access_;
  std::deque<std::string> links_;  // unused tokens
};

// Protects a server from the pages of other sites: which Host names it accepts, and which origins.
//
// Loopback and a private network are no boundary: any open page can send requests there, and a site
// can point one of its names at such an address (DNS rebinding), so that its pages may read the
// answers. Pure; callable from any thread.

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
