// A file of a page (web/) as an HTTP reply: compressed if the browser accepts that, without a body
// if the browser has the same version. Callable from any thread.
#pragma once

#include <optional>
#include <string_view>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"

namespace disttf::roles {

// "/", "/assets/app.js"
[[nodiscard]] bool is_asset(std::string_view path) noexcept;

// nullopt: there is no such file. `path` may differ from that of the request.
[[nodiscard]] std::optional<net::HttpReply> asset_reply(std::string_view path,
                                                        const net::HttpServerRequest& request);

}  // namespace disttf::roles
