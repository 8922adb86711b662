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

}  // namespace disttf::net
