#include "roles/serve/shell/serve_page.h"

#include <nlohmann/json.hpp>

#include "data/json/json_text.h"
#include "net/http/browser_guard.h"
#include "net/http/http_status.h"
#include "run/monitor/shell/asset_reply.h"

namespace disttf::roles {
namespace {

constexpr std::string_view kPage = "/assets/serve.html";  // of web/

// "kind": "image", "height", "width", "channels"; or "table", "inputs", "columns", "means".
std::string page_json(std::string_view name, const ServedModels& served,
                      const RunAccuracy& accuracy) {
  nlohmann::json json = {{"name", name}, {"ready", !served.models.empty()}};
  if (const auto newest = served.newest()) {
    const TrainedModel& model = newest->model;
    const math::Shape& shape = model.config.model.input;
    json["version"] = std::to_string(newest->version);
    json["dataset"] = model.config.dataset;
    json["weights"] = model.weights_sha256;
    if (model.is_of_numbers()) {
      json["kind"] = "table";
      json["inputs"] = shape.size();
      json["columns"] = model.config.examples.columns;
      json["means"] = model.config.examples.means;
    } else {
      json["kind"] = "image";
      json["height"] = shape.height;
      json["width"] = shape.width;
      json["channels"] = shape.channels;
    }
    json["label"] = model.config.examples.label;
    json["classes"] = nlohmann::json::array();
    // A model of numbers has one output, which has no name.
    for (std::size_t i = 0; !model.tells_numbers() && i < model.config.model.classes; ++i) {
      json["classes"].push_back(model.class_name(i));
    }
    // The checkpoint's own value first: the run's records have one for a step, not for weights.
    if (const auto known = model.accuracy ? model.accuracy : accuracy.of(newest->version)) {
      json["accuracy"] = *known;
    }
  }
  return data::json_text(json) + "\n";
}

}  // namespace

std::optional<net::HttpReply> page_reply(const net::HttpServerRequest& request,
                                         std::string_view name, const ServedModels& served,
                                         const RunAccuracy& accuracy) {
  const std::string_view file = request.path == "/" ? kPage : std::string_view(request.path);
  if (request.path != "/v1/page" && !is_asset(file)) {
    return std::nullopt;
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return net::error_reply(net::http_status::kMethodNotAllowed, request.path + " takes GET");
  }
  if (std::optional<net::HttpReply> reply = asset_reply(file, request)) {
    // Only files get the headers that restrict scripts; JSON runs none.
    net::BrowserGuard::seal(*reply);
    return reply;
  }
  return net::HttpReply{.body = page_json(name, served, accuracy),
                        .fields = {{"Cache-Control", "no-store"}}};
}

}  // namespace disttf::roles
