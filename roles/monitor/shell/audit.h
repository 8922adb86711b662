// Who has changed what at an address for people and their tools, for the log.
#pragma once

#include <cstddef>
#include <functional>

#include "net/http/http_request.h"

namespace disttf::roles {

// For HttpServerOptions::audit. "POST /v1/stop at the page by 127.0.0.1:51312: 200", as `info`, a
// warning where it was refused. `where`: which address, "the page".
[[nodiscard]] std::function<void(const net::HttpServerRequest&, int, std::size_t)> audit_of(
    const char* where);

}  // namespace disttf::roles
