#include "net/http/browser_guard.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

#include "net/http/access_tokens.h"
#include "net/http/http_status.h"
#include "net/http/url.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

// Scripts, styles and the stream come only from this page; pictures may also be inline. Text in the
// page is never executed.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kSeal = {{
    {"Content-Security-Policy", kPolicy},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
}};

// The token in "token=abc" or "token=abc&more". nullopt: there is none.
std::optional<std::string_view> token_in(std::string_view query) {
  constexpr std::string_view kName = "token=";
  if (!query.starts_with(kName)) return std::nullopt;
  query.remove_prefix(kName.size());
  return query.substr(0, query.find('&'));
}

}  // namespace

BrowserGuard::BrowserGuard(BrowserAccess access) : access_(std::move(access)) {}

void BrowserGuard::add_link(std::string token) {
  links_.push_back(std::move(token));
  if (links_.size() > kMaxLinks) links_.pop_front();
}

bool BrowserGuard::is_known_host(std::string_view host) const {
  const std::optional<Url> url = read_host("http", host);
  if (!url) return false;
  const std::string address = address_text(url->host);
  if (address.empty()) {
    return url->host == "localhost" ||
           std::find(access_.names.begin(), access_.names.end(), url->host) != access_.names.end();
  }
  const bool is_everywhere = access_.address == "0.0.0.0" || access_.address == "::";
  return is_everywhere || address.starts_with("127.") || address == "::1" ||
         address == address_text(access_.address);
}

// Whether a browser's request comes from this page: then its origin has the request's address. A
// proxy may have rewritten Host, but then the origin is one of the page's names.
bool BrowserGuard::is_own_origin(const HttpServerRequest& request) const {
  const std::optional<Url> origin = read_origin(request.origin);
  if (!origin || (access_.is_https && origin->scheme != Scheme::kHttps)) return false;
  const std::optional<Url> host = read_host(scheme_name(origin->scheme), request.host);
  if (host && host->host == origin->host && host->port == origin->port) return true;
  return std::find(access_.names.begin(), access_.names.end(), origin->host) != access_.names.end();
}

// Parses "a=1; b=2".
bool BrowserGuard::has_cookie(std::string_view cookies) const {
  // Browsers send cookies to every port of a host, so another service may have set one of the same
  // name: each is checked.
  bool found = false;
  while (!cookies.empty()) {
    const std::string_view each = trim(cookies.substr(0, cookies.find(';')));
    cookies.remove_prefix(std::min(cookies.find(';'), cookies.size() - 1) + 1);
    const std::size_t equals = each.find('=');
    if (equals != std::string_view::npos && each.substr(0, equals) == access_.cookie) {
      found = found || is_same_secret(each.substr(equals + 1), access_.secret);
    }
  }
  return found;
}

// Redirects to the page without the token, which would stay in the browser's history; sets the
// cookie if the token is unused.
HttpReply BrowserGuard::follow_link(std::string_view token) {
  HttpReply reply{
      .status = http_status::kSeeOther, .content_type = "text/plain; charset=utf-8", .body = {}};
  reply.fields.emplace_back("Location", "/");
  // No early exit, so that the time does not depend on which link matches.
  std::size_t right = links_.size();
  for (std::size_t each = 0; each < links_.size(); ++each) {
    if (is_same_secret(token, links_[each])) right = each;
  }
  if (right < links_.size()) {
    links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(right));
    reply.fields.emplace_back("Set-Cookie", access_.cookie + "=" + access_.secret +
                                                "; Path=/; HttpOnly; SameSite=Strict" +
                                                (access_.is_https ? "; Secure" : ""));
  }
  return reply;
}

std::optional<HttpReply> BrowserGuard::check(HttpServerRequest& request) {
  const bool is_of_no_browser = request.is_http10 && request.host.empty();
  // Before everything else: a page whose name resolves to this machine (DNS rebinding) must not
  // even use a link.
  if (!is_of_no_browser && !is_known_host(request.host)) {
    return error_reply(http_status::kMisdirected, "Host: " + quoted(request.host) +
                                                      " is not a name of this page "
                                                      "(--page_names adds names)");
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (const auto token = token_in(request.query); reads && request.path == "/" && token) {
    return follow_link(*token);
  }
  request.may_change = has_cookie(request.cookie);
  if (reads && access_.is_open && access_.is_open(request.path)) {
    return request.may_change ? std::nullopt : refuse_without_token(access_.tokens.get(), request);
  }
  if (!request.may_change) {
    return error_reply(http_status::kUnauthorized,
                       "this needs the cookie of the link that was printed at the start");
  }
  // A browser sends the cookie with any request, also from another port of this host.
  if (!reads && !is_own_origin(request)) {
    return error_reply(http_status::kForbidden,
                       "Origin: " + quoted(request.origin) + " is another page");
  }
  return std::nullopt;
}

void BrowserGuard::seal(HttpReply& reply) {
  for (const auto& [name, value] : kSeal) reply.fields.emplace_back(name, value);
  if (!reply.has_field("Cache-Control")) reply.fields.emplace_back("Cache-Control", "no-store");
}

namespace {

bool is_below(std::string_view name, std::string_view domain) {
  return name.size() > domain.size() && name.ends_with(domain);
}

// Whether no site can have this name.
bool is_private_name(std::string_view name) {
  return name.find('.') == std::string_view::npos || is_below(name, ".svc") ||
         is_below(name, ".svc.cluster.local") || is_below(name, ".localhost");
}

bool has_name(const ServiceNames& names, std::string_view name) {
  return std::ranges::any_of(names.names, [name](const std::string& each) {
    const bool is_pattern = each.starts_with("*.");
    return each == "*" || each == name ||
           (is_pattern && is_below(name, std::string_view(each).substr(1)));
  });
}

std::string name_of(const Url& url) {
  std::string name = to_lower(url.host);
  // A last dot only marks the name as complete.
  if (name.ends_with('.')) name.pop_back();
  return name;
}

bool is_own_page(const HttpServerRequest& request, const ServiceNames& names) {
  const std::optional<Url> origin = read_origin(request.origin);
  if (!origin) return false;
  const std::optional<Url> host = read_host(scheme_name(origin->scheme), request.host);
  if (host && name_of(*host) == name_of(*origin) && host->port == origin->port) return true;
  // A proxy in front may rewrite Host; "*" applies to Host only.
  const std::string name = name_of(*origin);
  return std::ranges::any_of(names.names, [&](const std::string& each) {
    return each != "*" && has_name({.names = {each}}, name);
  });
}

}  // namespace

std::optional<Url> read_host(std::string_view scheme, std::string_view text) {
  if (text.empty() || text.find_first_of("/?#") != std::string_view::npos) return std::nullopt;
  std::string why;
  return read_url(std::string(scheme) + "://" + std::string(text), why);
}

std::optional<Url> read_origin(std::string_view text) {
  const std::size_t mark = text.find("://");
  if (mark == std::string_view::npos) return std::nullopt;
  return read_host(text.substr(0, mark), text.substr(mark + 3));
}

std::string address_text(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, host.c_str(), bytes.data()) == 1) {
      return inet_ntop(family, bytes.data(), text.data(), text.size());
    }
  }
  return {};
}

std::optional<HttpReply> refuse_other_pages(const HttpServerRequest& request,
                                            const ServiceNames& names) {
  // A page of another site may have its name resolve to this machine (DNS rebinding). Its browser
  // sends that name as the Host, so the request is refused.
  if (!request.host.empty()) {  // HTTP/1.0 may have none, and no browser uses it
    const std::optional<Url> host = read_host("http", request.host);
    const bool is_known =
        host && (!address_text(host->host).empty() || is_private_name(name_of(*host)) ||
                 has_name(names, name_of(*host)));
    if (!is_known) {
      return error_reply(http_status::kMisdirected,
                         "Host: " + net::quoted(request.host) +
                             " is not a name of this service (--host_names adds names)");
    }
  }
  const bool only_reads =
      request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
  // Reads need no check of the page: replies carry no CORS fields, so a browser does not show them
  // to a page of another site.
  if (!only_reads && !request.origin.empty() && !is_own_page(request, names)) {
    return error_reply(http_status::kForbidden,
                       "Origin: " + net::quoted(request.origin) +
                           " is a page of another site (--host_names adds its name)");
  }
  return std::nullopt;
}

}  // namespace disttf::net
