// A service on real sockets, http or https.
#pragma once

#include <algorithm>
#include <asio/io_context.hpp>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http/http_service.h"
#include "net/tcp/sockets.h"
#include "tests/net/https_client.h"
#include "tests/net/raw_http_client.h"

namespace disttf::net::test {

// Answers "METHOD PATH BODY", repeated as the query says; /later in the next turn, and /computes
// once `may_end` is set.
class Echo final : public HttpServiceHandler {
 public:
  struct Counts {
    std::atomic<int> answers = 0;
    std::atomic<int> computing = 0;       // requests for /computes
    std::atomic<int> most_in_a_turn = 0;  // requests
    std::atomic<bool> may_end = false;
  };
  explicit Echo(Counts& counts) : counts_(counts) {}

  void ask(HttpExchange& exchange) override {
    const HttpServerRequest& request = exchange.request();
    if (request.path == "/throws") throw std::runtime_error("it\n broke");
    if (request.path == "/computes") {
      ++counts_.computing;
      counts_.computing.notify_all();
      counts_.may_end.wait(false);
    }
    ++asked_;
    if (request.path == "/later") {
      later_.push_back(&exchange);
    } else {
      answer(exchange);
    }
  }
  bool work() override {
    counts_.most_in_a_turn = std::max(counts_.most_in_a_turn.load(), std::exchange(asked_, 0));
    for (HttpExchange* const each : std::exchange(later_, {})) answer(*each);
    return false;
  }
  void answered(const HttpExchange& /*exchange*/, int /*status*/, std::size_t /*bytes*/) override {
    ++counts_.answers;
  }

 private:
  static void answer(HttpExchange& exchange) {
    const HttpServerRequest& request = exchange.request();
    const std::size_t times = request.query.empty() ? 1 : std::stoul(request.query);
    const std::string line = request.method + " " + request.path + " " + request.body + "\n";
    std::string body;
    body.reserve(times * line.size());
    for (std::size_t i = 0; i < times; ++i) {
      body += line;
    }
    exchange.answer({.content_type = "text/plain", .body = body});
  }
  Counts& counts_;
  int asked_ = 0;  // since the last turn
  std::vector<HttpExchange*> later_;
};

// A service of two threads, which answers as Echo does.
class ServiceTest : public WithIdentities {
 protected:
  ~ServiceTest() override { stop(); }

  void serve(HttpServiceOptions options = {}, HttpListenerOptions listener = {}) {
    options.threads = 2;
    service_ = std::make_unique<HttpService>(
        options, [this](std::size_t /*thread*/) { return std::make_unique<Echo>(counts_); });
    auto acceptor = listen_on(context_, 0, ListenScope::kLoopback);
    port_ = acceptor.local_endpoint().port();
    service_->listen(std::move(acceptor), std::move(listener));
    for (std::size_t i = 0; i < service_->threads(); ++i) {
      threads_.emplace_back([this, i] { service_->run(i); });
    }
  }
  void let_end() {
    counts_.may_end = true;
    counts_.may_end.notify_all();
  }
  void stop() {
    let_end();
    if (service_) service_->stop();
    for (std::thread& each : threads_) each.join();
    threads_.clear();
  }
  [[nodiscard]] RawClient connect() const { return RawClient(port_); }

  asio::io_context context_;
  Echo::Counts counts_;
  std::unique_ptr<HttpService> service_;
  std::vector<std::thread> threads_;
  std::uint16_t port_ = 0;
};

}  // namespace disttf::net::test
