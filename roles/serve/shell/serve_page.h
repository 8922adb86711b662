// What a browser asks of a service beside the APIs.
//
//   GET /               the page (docs/serve_page.md); GET /assets/FILE what it consists of
//   GET /v1/page        {"name", "version", "kind", ...}: of the newest model, for whoever draws a
//                       form for its inputs
#pragma once

#include <optional>
#include <string_view>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "roles/serve/shell/model_shelf.h"
#include "roles/serve/shell/run_accuracy.h"

namespace disttf::roles {

// `name`: what the model is called. nullopt: it is none of the page's addresses. Callable from any
// thread.
[[nodiscard]] std::optional<net::HttpReply> page_reply(const net::HttpServerRequest& request,
                                                       std::string_view name, const Shelf& shelf,
                                                       const RunAccuracy& accuracy);

}  // namespace disttf::roles
