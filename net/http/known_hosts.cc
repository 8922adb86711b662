#include "net/http/known_hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "net/http/http_status.h"
#include "net/wire/text.h"

namespace disttf::net {
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
