// A file of a page (web/), as the reply to a request: compressed where the browser takes that, and
// without a body where it has the same bytes already. Callable from any thread.
#pragma once

#include <optional>
#include <string_view>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"

namespace disttf::roles {

// "/", "/assets/app.js"
[[nodiscard]] bool is_asset(std::string_view path) noexcept;

// nullopt: there is no such file. `path` may be another one than that of the request.
[[nodiscard]] std::optional<net::HttpReply> asset_reply(std::string_view path,
                                                        const net::HttpServerRequest& request);

}  // namespace disttf::roles
