// The browser page of a service, beside the APIs.
//
//   GET /               the page (docs/serve_page.md); GET /assets/FILE: its parts
//   GET /v1/page        {"name", "version", "kind", ...}: of the newest model, for drawing a form
//   of
//                       its inputs
#pragma once

#include <optional>
#include <string_view>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "roles/serve/shell/model_registry.h"
#include "roles/serve/shell/run_accuracy.h"

namespace disttf::roles {

// `name`: of the model. nullopt: the path is not the page's. For any thread.
[[nodiscard]] std::optional<net::HttpReply> page_reply(const net::HttpServerRequest& request,
                                                       std::string_view name,
                                                       const ServedModels& served,
                                                       const RunAccuracy& accuracy);

}  // namespace disttf::roles
