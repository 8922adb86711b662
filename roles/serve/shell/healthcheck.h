// `disttf healthcheck [URL]`: checks a service by a request, or checks the disttf of this
// container. For containers whose image has no other client.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "net/http/url.h"

namespace disttf::roles {

struct HealthcheckOptions {
  std::optional<net::Url> url;              // nullopt: the disttf of this container
  std::chrono::milliseconds timeout{5000};  // for the whole check
  std::string ca_file = {};                 // as in HttpRequest
  std::string token_file = {};              // as in AccessTokens: the first token is sent
};

// Prints a sentence if the answer is 200. Without a URL it succeeds if the disttf with the lowest
// pid of this PID namespace, except this process, is neither stopped nor ending and, if it is
// `serve`, answers /v2/health/live at its port. Throws Failure: kError with the other answer, the
// timeout, or the state of the process; kUsage if the tokens cannot be read; that of a signal. Uses
// no proxy.
[[nodiscard]] int run_healthcheck(const HealthcheckOptions& options);

}  // namespace disttf::roles
