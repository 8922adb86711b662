// `disttf healthcheck URL`: asks a service whether it is well. For containers whose image has no
// other program that could.
#pragma once

#include <chrono>
#include <string>

#include "net/http/url.h"

namespace disttf::roles {

struct HealthcheckOptions {
  net::Url url;
  std::chrono::milliseconds timeout{5000};  // for all of it
  std::string ca_file = {};                 // as HttpRequest has it
  std::string token_file = {};              // as AccessTokens has it: the first is said
};

// Prints a sentence where the answer is 200. Throws Failure: kError with what came instead of it,
// or what did not come in time; kUsage where the tokens cannot be read; that of a signal. No proxy
// is asked.
[[nodiscard]] int run_healthcheck(const HealthcheckOptions& options);

}  // namespace disttf::roles
