#include "net/http/http_local.h"

#include "net/http/http_session.h"

namespace disttf::net {
namespace {

// No log is followed for longer.
constexpr std::chrono::hours kForever{24 * 365};

class LocalReceiver final : public HttpReceiver {
 public:
  explicit LocalReceiver(const OnLocalBody& on_body) : on_body_(on_body) {}

  MaybeFailure on_head(const HttpHead& head) override {
    status_ = head.status;
    on_body_(status_, {});
    return std::nullopt;
  }
  MaybeFailure on_data(std::span<const std::byte> bytes) override {
    on_body_(status_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return std::nullopt;
  }
  std::string position() const override { return "a part of the answer"; }

 private:
  const OnLocalBody& on_body_;
  int status_ = 0;
};

}  // namespace

std::error_code http_over_local(const LocalHttpRequest& request, const OnLocalBody& on_body) {
  const Interrupt never;
  const bool is_bounded = request.read_timeout.count() > 0;
  HttpSession session({.stall_timeout = is_bounded ? request.read_timeout : kForever}, {}, {},
                      never);
  LocalReceiver receiver(on_body);
  const MaybeFailure failure =
      session.ask({.method = request.method,
                   .url = {.host = "disttf", .port = 80, .target = request.target},
                   .socket = request.socket,
                   .fields = {{"Content-Type", "application/json"}, {"Connection", "close"}},
                   .body = std::as_bytes(std::span(request.body))},
                  receiver);
  if (!failure) return {};
  return failure->error == HttpError::kStalled ? std::make_error_code(std::errc::timed_out)
                                               : failure->error;
}

std::error_code try_local(const std::string& socket) {
  const Interrupt never;
  return HttpConnection(never).connect_local(socket);
}

}  // namespace disttf::net
