#include "roles/serve/shell/serve_page.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

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

namespace {

// nullopt: the record is of another kind, or lacks the number.
std::optional<double> test_accuracy(const nlohmann::ordered_json& record) {
  if (record.value("kind", std::string()) != "evaluation" || !record.contains("test")) {
    return std::nullopt;
  }
  const auto& test = record.at("test");
  if (!test.is_object() || !test.contains("accuracy") || !test.at("accuracy").is_number()) {
    return std::nullopt;
  }
  return test.at("accuracy").get<double>();
}

}  // namespace

void RunAccuracy::look() noexcept {
  std::error_code ignored;
  // The directory may be a store's URL, or may not exist yet.
  if (!std::filesystem::is_directory(directory_, ignored)) {
    return;
  }
  try {
    static_cast<void>(files_.read(BadLines::kSkip, [this](const nlohmann::ordered_json& record) {
      const std::optional<double> accuracy = test_accuracy(record);
      if (!accuracy || !record.contains("step") || !record.at("step").is_number_unsigned()) {
        return;
      }
      // Per record, not per file: threads that answer requests never wait for the disk.
      const std::lock_guard lock(mutex_);
      by_step_[record.at("step").get<std::uint64_t>()] = *accuracy;
      if (by_step_.size() > kMostSteps) {
        // The lowest step: models in service are among the newest.
        by_step_.erase(by_step_.begin());
      }
    }));
  } catch (const std::exception&) {  // the disk, or memory: retried at the next look
  }
}

std::optional<double> RunAccuracy::of(std::uint64_t step) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_step_.find(step);
  return found == by_step_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace disttf::roles
