// The audit log of changes through an HTTP address: who changed what.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "net/http/http_request.h"

namespace disttf::roles {

// For HttpResponderOptions::audit. Logs "POST /v1/stop at the page by 127.0.0.1:51312: 200" as
// `info`, a rejected request as a warning. `where`: the address, "the page".
[[nodiscard]] std::function<void(const net::HttpServerRequest&, const std::string&, int,
                                 std::size_t)>
audit_of(const char* where);

}  // namespace disttf::roles
