#include "run/monitor/shell/page_server.h"

#include <fmt/format.h>

#include <array>
#include <asio/executor_work_guard.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "data/json/json_text.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/monitor/shell/address_access.h"
#include "run/monitor/shell/record_feed.h"
#include "run/outcome.h"
#include "run/process/event_loop.h"
#include "run/process/start_thread.h"
#include "run/process/task_listener.h"

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

namespace {

// The possible changes, by the last part of their path.
struct Verb {
  std::string_view name;
  std::function<std::string()> PageThread::Changes::*change;
};
constexpr std::array<Verb, 3> kVerbs = {{{"save", &PageThread::Changes::save},
                                         {"trace", &PageThread::Changes::trace},
                                         {"stop", &PageThread::Changes::stop}}};

std::vector<std::string> verbs_of(const PageThread::Changes& changes) {
  std::vector<std::string> verbs;
  for (const Verb& verb : kVerbs) {
    if (changes.*verb.change) {
      verbs.emplace_back(verb.name);
    }
  }
  return verbs;
}

net::HttpReply answer_change(const PageThread::Changes& changes,
                             const net::HttpServerRequest& request) {
  const auto verb = std::ranges::find_if(kVerbs, [&request](const Verb& each) {
    return request.path == "/v1/" + std::string(each.name);
  });
  if (verb == kVerbs.end() || !(changes.*verb->change)) {
    return net::error_reply(net::http_status::kNotFound,
                            net::quoted(request.path) + " is not there");
  }
  // A GET must change nothing: browsers and proxies repeat it, and other sites can cause it.
  if (request.method != "POST") {
    return net::error_reply(net::http_status::kMethodNotAllowed, request.path + " takes POST");
  }
  return {.body = data::json_text(nlohmann::json{{"message", (changes.*verb->change)()}}) + "\n"};
}

}  // namespace

struct PageThread::Parts {
  Parts(const PageOptions& options, Changes may_change)
      : changes(std::move(may_change)),
        page(feed, verbs_of(changes)),
        server(context, options, page, [this](const net::HttpServerRequest& request) {
          return answer_change(changes, request);
        }) {}

  const Changes changes;
  asio::io_context context{1};
  // Keeps run() from returning while no browser is connected.
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  // Used by the thread only, once it runs.
  RecordFeed feed;
  RunPage page;
  PageServer server;
  std::thread thread;
};

PageThread::PageThread(const PageOptions& options, Changes changes)
    : parts_(std::make_unique<Parts>(options, std::move(changes))),
      link_(parts_->server.make_link()) {
  parts_->thread = start_thread([this] { keep_running(parts_->context, "the page"); });
}

PageThread::~PageThread() {
  // On the page's own thread: its objects are not thread-safe.
  asio::post(parts_->context, [this] {
    parts_->server.stop();
    parts_->work.reset();
  });
  parts_->thread.join();
}

void PageThread::take(std::string line) {
  // Posted, so that the training thread neither waits for the page nor needs a lock.
  asio::post(parts_->context, [this, line = std::move(line)] { parts_->feed.take(line); });
}

}  // namespace disttf::roles
