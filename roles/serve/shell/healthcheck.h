// `disttf healthcheck [URL]`: asks a service whether it is well, or looks at the disttf of this
// container. For containers whose image has no other program that could.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "net/http/url.h"

namespace disttf::roles {

struct HealthcheckOptions {
  std::optional<net::Url> url;              // nullopt: the disttf of this container
  std::chrono::milliseconds timeout{5000};  // for all of it
  std::string ca_file = {};                 // as HttpRequest has it
  std::string token_file = {};              // as AccessTokens has it: the first is said
};

// Prints a sentence where the answer is 200. Without a URL: where the disttf with the lowest number
// of this PID namespace, beside this process, is neither stopped nor ending and, if it is `serve`,
// answers /v2/health/live at the port that it listens on. Throws Failure: kError with what came
// instead of it, what did not come in time, or what is wrong with the process; kUsage where the
// tokens cannot be read; that of a signal. No proxy is asked.
[[nodiscard]] int run_healthcheck(const HealthcheckOptions& options);

}  // namespace disttf::roles
