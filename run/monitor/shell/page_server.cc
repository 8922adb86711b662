#include "run/monitor/shell/page_server.h"

#include <fmt/format.h>

#include <asio/ip/tcp.hpp>
#include <random>
#include <system_error>
#include <utility>

#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/monitor/shell/audit.h"
#include "run/outcome.h"
#include "run/process/predecessor.h"

namespace disttf::roles {
namespace {

using asio::ip::tcp;

// Throws std::system_error.
tcp::acceptor listen_at(asio::io_context& context, const PageOptions& options) {
  tcp::resolver resolver(context);
  const tcp::endpoint endpoint =
      *resolver
           .resolve(options.host, std::to_string(options.port),
                    tcp::resolver::passive | tcp::resolver::numeric_service)
           .begin();
  return {context, endpoint};  // sets SO_REUSEADDR, and listens
}

tcp::acceptor listen_as_asked(asio::io_context& context, const PageOptions& options) {
  try {
    return listen_after_predecessor("--page_port " + std::to_string(options.port),
                                    [&] { return listen_at(context, options); });
  } catch (const std::system_error& error) {
    throw Failure(kCannotListen, "the page cannot listen on " + net::quoted(options.host) +
                                     " port " + std::to_string(options.port) + ": " +
                                     error.code().message());
  }
}

// The address in links. If the page listens on all addresses, the loopback address.
std::string link_address(const tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  const std::string port = ":" + std::to_string(endpoint.port());
  if (address.is_v4()) {
    return (address.is_unspecified() ? "127.0.0.1" : address.to_string()) + port;
  }
  return "[" + (address.is_unspecified() ? "::1" : address.to_string()) + "]" + port;
}

net::HttpResponder::Answer answer_of(RunPage& page, net::HttpResponder::Answer others) {
  return [&page, others = std::move(others)](const net::HttpServerRequest& request) {
    if (std::optional<net::HttpReply> reply = page.answer(request)) {
      return *std::move(reply);
    }
    return others ? others(request)
                  : net::error_reply(net::http_status::kNotFound,
                                     net::quoted(request.path) + " is not there");
  };
}

}  // namespace

PageServer::PageServer(asio::io_context& context, const PageOptions& options, RunPage& page,
                       net::HttpResponder::Answer others)
    : page_(page),
      server_(context, answer_of(page, std::move(others)), {.audit = audit_of("the page")}) {
  std::shared_ptr<net::TlsIdentity> identity = identity_of(options.files);
  tcp::acceptor acceptor = listen_as_asked(context, options);
  const tcp::endpoint endpoint = acceptor.local_endpoint();
  // A certificate is usually for a name, not for an address.
  const bool has_name = identity != nullptr && !options.names.empty();
  address_ = std::string(options.files.scheme()) + "://" +
             (has_name ? options.names.front() + ":" + std::to_string(endpoint.port())
                       : link_address(endpoint));
  guard_ = std::make_shared<net::BrowserGuard>(
      net::BrowserAccess{.secret = make_secret(),
                         // Browsers send cookies to all ports of a host: the name keeps two pages
                         // of one machine apart.
                         .cookie = "disttf_" + std::to_string(endpoint.port()),
                         .address = endpoint.address().to_string(),
                         .names = options.names,
                         .is_https = identity != nullptr,
                         .is_open = &RunPage::is_open,
                         .tokens = tokens_of(options.files, options.host)});
  server_.listen(std::move(acceptor), {.use = net::HttpUse::kBrowser,
                                       .max_connections = net::kBrowserConnections,
                                       .identity = std::move(identity),
                                       .refuse = [guard = guard_](net::HttpServerRequest& request) {
                                         return guard->check(request);
                                       }});
}

std::string PageServer::make_link() {
  std::string token = make_secret();
  guard_->add_link(token);
  return url() + "?token=" + token;
}

void PageServer::stop() {
  // First, so that readers get the last event before their connections close.
  page_.end();
  server_.stop();
}

std::string make_secret() {
  std::random_device random;  // reads the system's generator
  std::string secret;
  // 128 bits.
  for (int each = 0; each < 4; ++each) {
    secret += fmt::format("{:08x}", random());
  }
  return secret;
}

}  // namespace disttf::roles
