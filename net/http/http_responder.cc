#include "net/http/http_responder.h"

#include <system_error>

#include "net/http/access_tokens.h"
#include "net/http/http_status.h"

namespace disttf::net {

class HttpResponder::Handler final : public HttpServiceHandler {
 public:
  explicit Handler(HttpResponder& owner) : owner_(owner) {}

  void ask(HttpExchange& exchange) override {
    exchange.answer(owner_.is_stopping_
                        ? error_reply(http_status::kUnavailable, "the run is ending")
                        : owner_.answer_(exchange.request()));
  }
  bool work() override { return false; }
  void answered(const HttpExchange& exchange, int status, std::size_t /*bytes*/) override {
    owner_.audit(exchange, status);
  }

 private:
  HttpResponder& owner_;
};

HttpResponder::HttpResponder(asio::io_context& context, Answer answer, HttpResponderOptions options)
    : answer_(std::move(answer)),
      options_(std::move(options)),
      service_(options_.service, [this](std::size_t) { return std::make_unique<Handler>(*this); }),
      ready_(context, service_.descriptor()),
      timer_(context) {}

HttpResponder::~HttpResponder() { ready_.release(); }

void HttpResponder::stop() {
  is_stopping_ = true;
  service_.stop();
}

void HttpResponder::wait() {
  ready_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (error) return;
    try {
      if (!turn()) return;
    } catch (...) {
      wait();  // the service goes on, if the context does
      throw;
    }
    wait();
  });
}

// False: the service has ended, and the context needs to do nothing for it.
bool HttpResponder::turn() {
  const std::optional<std::chrono::milliseconds> next = service_.turn();
  timer_.cancel();
  if (!next) {
    ready_.cancel();
  } else if (*next != std::chrono::milliseconds::max()) {
    timer_.expires_after(*next);
    timer_.async_wait([this](std::error_code error) {
      if (!error) turn();
    });
  }
  return next.has_value();
}

void HttpResponder::audit(const HttpExchange& exchange, int status) {
  const HttpServerRequest& request = exchange.request();
  const bool is_change = request.method == "POST" || request.method == "PUT" ||
                         request.method == "PATCH" || request.method == "DELETE";
  const bool is_refused = status == http_status::kUnauthorized ||
                          status == http_status::kForbidden || status == http_status::kMisdirected;
  const bool is_whole = exchange.begun() != std::chrono::steady_clock::time_point();
  if (!options_.audit || !is_change || (!is_refused && !is_whole)) return;
  if (!is_refused) {
    options_.audit(request, exchange.client(), status, 0);
    return;
  }
  // Refused attempts may come at any rate, so they share one line per interval; successful changes
  // are always recorded.
  const auto now = std::chrono::steady_clock::now();
  if (told_refusal_ && now - *told_refusal_ < options_.audit_interval) {
    ++untold_;
    return;
  }
  told_refusal_ = now;
  options_.audit(request, exchange.client(), status, std::exchange(untold_, 0));
}

std::function<std::optional<HttpReply>(HttpServerRequest&)> bearer_of(const std::string& token) {
  return [field = "Bearer " + token](const HttpServerRequest& request) -> std::optional<HttpReply> {
    if (is_same_secret(request.authorization, field)) return std::nullopt;
    return error_reply(http_status::kUnauthorized, refusal_sentence(http_status::kUnauthorized));
  };
}

}  // namespace disttf::net
