// Who may ask what at an address that browsers reach, and what browsers are told to forbid.
//
// Loopback is no boundary: any page that somebody has open can send requests there, and a name that
// its owner points at 127.0.0.1 makes them look as if they came from this page. So, in this order:
//
//   Host      an address or a name that this page is known by, else 421: before anything is routed
//   ?token=   of the link that was printed: once, for a cookie, and on to the page without it
//   reading   of what is open to all: without more, or with a token where there is a file of them,
//             or the cookie; else 401
//   the rest  whatever the method: the cookie, else 401; and for more than reading the Origin of
//             the page itself, else 403
//
// Every reply is sealed with the fields that keep others from framing, guessing and leaking it.
// Decides, and knows no socket; one thread.
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
  // What is in the cookie. REQUIRES: not empty, and not to be guessed: 128 bits as hexadecimal
  // digits.
  std::string secret;
  // Cookies are shared by all ports of a host, so each page has a name of its own for its cookie.
  std::string cookie;
  // The address that it listens on; of "0.0.0.0" and "::" every address is one of it. A name is
  // never let in by its address: whom it belongs to, nobody knows here.
  std::string address = "127.0.0.1";
  // Names that it is reached by besides localhost, such as a reverse proxy's, lower case.
  std::vector<std::string> names = {};
  bool is_https = false;  // then browsers say the cookie over https alone, and so does its page
  // What anybody may read who reaches it, or who has one of the tokens.
  std::function<bool(std::string_view path)> is_open;
  std::shared_ptr<AccessTokens> tokens = nullptr;  // null: none is asked for
};

class BrowserGuard {
 public:
  explicit BrowserGuard(BrowserAccess access);

  // A link's token, good for one cookie, from now on. The oldest of more than kMaxLinks is
  // forgotten.
  static constexpr std::size_t kMaxLinks = 8;
  void add_link(std::string token);

  // nullopt: the request may be answered, and may_change is set. Else the reply to it.
  [[nodiscard]] std::optional<HttpReply> check(HttpServerRequest& request);

  // What every reply carries.
  static void seal(HttpReply& reply);

 private:
  [[nodiscard]] bool is_known_host(std::string_view host) const;
  [[nodiscard]] bool is_own_origin(const HttpServerRequest& request) const;
  [[nodiscard]] bool has_cookie(std::string_view cookies) const;
  [[nodiscard]] HttpReply follow_link(std::string_view token);

  BrowserAccess access_;
  std::deque<std::string> links_;  // tokens that nobody has used yet
};

// Whether it is "Bearer " and the token.
[[nodiscard]] bool is_bearer(std::string_view authorization, std::string_view token) noexcept;

}  // namespace disttf::net
