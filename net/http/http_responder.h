// Answers HTTP requests by a function on the thread of an io_context: for pages, commands and
// metrics. An HttpService of one thread, the turns of which the context runs; no locks.
#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/http/http_service.h"

namespace disttf::net {

// For HttpListenerOptions::max_connections. A browser opens six, one of them for a page's stream.
inline constexpr std::size_t kCommandConnections = 32;
inline constexpr std::size_t kBrowserConnections = 64;

struct HttpResponderOptions {
  HttpServiceOptions service = {.request_timeout = std::chrono::milliseconds(5000),
                                .write_timeout = std::chrono::milliseconds(10'000),
                                .idle_timeout = std::chrono::milliseconds(30'000),
                                .stop_grace = std::chrono::milliseconds(1000)};
  // Called for each answered request that is to change something (POST, PUT, PATCH, DELETE), with
  // its client and the reply's status. Of refused ones (401, 403, 421) at most one per
  // `audit_interval` is reported; `untold` is the number of unreported ones before it. May be
  // empty.
  std::function<void(const HttpServerRequest& request, const std::string& client, int status,
                     std::size_t untold)>
      audit = {};
  std::chrono::milliseconds audit_interval{1000};
};

class HttpResponder {
 public:
  // Not called after stop(). An exception from it becomes a 500 with its text.
  using Answer = std::function<HttpReply(const HttpServerRequest&)>;

  // `context` must outlive the responder, and not run after it. Throws std::system_error.
  HttpResponder(asio::io_context& context, Answer answer, HttpResponderOptions options = {});
  ~HttpResponder();
  HttpResponder(const HttpResponder&) = delete;
  HttpResponder& operator=(const HttpResponder&) = delete;

  // Takes over the acceptor's socket, and accepts once the context runs. Throws std::system_error.
  template <class Acceptor>
  void listen(Acceptor acceptor, HttpListenerOptions options) {
    service_.listen(std::move(acceptor), std::move(options));
    if (!std::exchange(is_listening_, true)) wait();
  }
  // Stops accepting, ends the streams, and closes what is still open after the grace period. Then
  // the context runs out of work.
  void stop();

 private:
  class Handler;
  void wait();
  bool turn();
  void audit(const HttpExchange& exchange, int status);

  const Answer answer_;
  const HttpResponderOptions options_;
  HttpService service_;
  asio::posix::stream_descriptor ready_;  // the service's descriptor, which it borrows
  asio::steady_timer timer_;
  bool is_listening_ = false;
  bool is_stopping_ = false;
  std::optional<std::chrono::steady_clock::time_point> told_refusal_;  // time of the last one
  std::size_t untold_ = 0;                                             // refusals since then
};

// For HttpListenerOptions::refuse: requests need "Authorization: Bearer TOKEN", else the reply is
// 401. REQUIRES: `token` is not empty.
[[nodiscard]] std::function<std::optional<HttpReply>(HttpServerRequest&)> bearer_of(
    const std::string& token);

}  // namespace disttf::net
