#include "roles/serve/shell/healthcheck.h"

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>

#include "net/http/access_tokens.h"
#include "net/http/http_client.h"
#include "net/transport/same_host.h"
#include "roles/process/log.h"
#include "roles/process/stop_signal.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

// An answer that says "well" is short; who sends this much is no such service.
constexpr std::uint64_t kMostHealthBytes = std::uint64_t{16} << 20U;

// What it says is not looked at, but it must have come.
class Unread : public net::HttpSink {
 public:
  std::error_code on_header(const net::HttpBodyInfo& /*info*/) override { return {}; }
  std::error_code on_data(std::span<const std::byte> /*bytes*/) override { return {}; }
};

std::string token_in(const std::string& file) {
  if (file.empty()) {
    return {};
  }
  try {
    return net::AccessTokens(file, {}).offered();
  } catch (const std::invalid_argument& error) {
    throw Failure(kUsage, error.what());
  }
}

}  // namespace

int run_healthcheck(const HealthcheckOptions& options) {
  const StopSignal stop;
  net::HttpRequest request;
  request.url = options.url;
  request.ca_file = options.ca_file;
  request.connect_timeout = options.timeout;
  request.stall_timeout = options.timeout;
  request.deadline = net::Clock::now() + options.timeout;
  request.max_bytes = kMostHealthBytes;
  request.token = token_in(options.token_file);
  if (!request.token.empty() && options.url.scheme == net::Scheme::kHttp &&
      !net::is_loopback_host(options.url.host)) {
    log_warning("--token_file: the token goes to " + options.url.host +
                " in clear, for everybody on the way to see");
  }
  Unread sink;
  const net::HttpOutcome outcome = net::http_get(request, sink, stop.interrupt());
  stop.throw_if_stopped();
  if (outcome.error) {
    throw Failure(kError, outcome.sentence);
  }
  print_result(net::to_string(options.url) + ": well");
  return kDone;
}

}  // namespace disttf::roles
