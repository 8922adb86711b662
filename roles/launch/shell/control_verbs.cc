#include "roles/launch/shell/control_verbs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/json/json_text.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/monitor/core/step_sampling.h"
#include "run/monitor/core/text_table.h"
#include "run/monitor/shell/process_facts.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;  // keeps the order for human readers

net::HttpReply json_reply(const OrderedJson& json) {
  return {.body = data::json_text(json, {.indent = 2}) + "\n"};
}

OrderedJson json_of(const TaskStatus& task) {
  return {{"task", task_name(task.id)},
          {"address", net::to_string(task.address)},
          {"state", name_of(task.state)},
          {"pid", task.pid > 0 ? OrderedJson(task.pid) : OrderedJson(nullptr)},
          {"restarts", task.restarts},
          {"since", time_text(record_time(task.since))}};
}

net::HttpReply status_reply(const JobStatus& status) {
  OrderedJson json = {{"state", status.state},
                      {"pid", status.pid},
                      {"since", time_text(record_time(status.since))}};
  json["step"] = status.progress ? OrderedJson(status.progress->step) : OrderedJson(nullptr);
  json["train_steps"] =
      status.progress ? OrderedJson(status.progress->train_steps) : OrderedJson(nullptr);
  json["loss"] = status.progress ? OrderedJson(status.progress->loss) : OrderedJson(nullptr);
  json["tasks"] = OrderedJson::array();
  for (const TaskStatus& task : status.tasks) {
    json["tasks"].push_back(json_of(task));
  }
  return json_reply(json);
}

net::HttpReply endpoints_reply(const JobStatus& status) {
  OrderedJson json = OrderedJson::object();
  for (const TaskStatus& task : status.tasks) {
    json[std::string(net::job_name(task.id.job))].push_back(net::to_string(task.address));
  }
  if (!status.socket.empty()) {
    json["control"].push_back(status.socket);
  }
  if (!status.url.empty()) {
    json["control"].push_back(status.url);
  }
  if (!status.secret_file.empty()) {
    json["secret_file"].push_back(status.secret_file);
  }
  return json_reply(json);
}

net::HttpReply pods_reply(const JobStatus& status) {
  OrderedJson json = OrderedJson::array();
  for (const TaskStatus& task : status.tasks) {
    json.push_back(task_name(task.id));
  }
  return json_reply(json);
}

// Splits a path at slashes: "/v1/logs/worker:1" -> "v1", "logs", "worker:1".
std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view part = path.substr(0, path.find('/'));
    parts.push_back(part);
    path.remove_prefix(part.size());
  }
  return parts;
}

net::HttpReply log_reply(ManagedJob& job, std::string_view name, const std::string& query) {
  const net::TaskId id = net::task_from_name(name);
  if (!query.empty() && query != "follow=true" && query != "follow=false") {
    return net::error_reply(net::http_status::kBadRequest,
                            "logs: " + net::quoted(query) + " is not follow=true, or follow=false");
  }
  net::HttpReply reply{.content_type = "text/plain; charset=utf-8", .body = job.log(id)};
  if (query == "follow=true") {
    // The text and the stream are taken in one step on one thread, so no line is lost or doubled.
    reply.lines = job.follow(id);
  }
  return reply;
}

LaunchUpdate read_update(const std::string& body) {
  // Depth 1: no field of an update is a map or a list.
  const OrderedJson json = data::parse_ordered_json(body, 1);
  constexpr const char* kAllowed =
      R"(; expected a map such as {"workers": 4, "options": "the text of an options file"})";
  if (!json.is_object()) {
    throw std::invalid_argument("update: " + net::quoted(body) + " is not a JSON map" + kAllowed);
  }
  LaunchUpdate update;
  for (const auto& [key, value] : json.items()) {
    if (key == "workers" && value.is_number_unsigned()) {
      update.workers = value.get<std::size_t>();
    } else if (key == "options" && value.is_string()) {
      update.options = value.get<std::string>();
    } else {
      throw std::invalid_argument("update: " + net::quoted(key) + " is " +
                                  net::quoted(data::json_text(value)) + kAllowed);
    }
  }
  if (!update.workers && !update.options) {
    throw std::invalid_argument(std::string("update: neither workers nor options are given") +
                                kAllowed);
  }
  return update;
}

std::uint32_t read_steps(const std::string& body) {
  const OrderedJson json = data::parse_ordered_json(body, 1);
  const bool has_steps = json.is_object() && json.contains("steps");
  const OrderedJson steps = has_steps ? json["steps"] : OrderedJson();
  if (!steps.is_number_unsigned() || steps.get<std::uint64_t>() < 1 ||
      steps.get<std::uint64_t>() > StepWindow::kMost) {
    throw std::invalid_argument("trace: " + net::quoted(body) + R"( is not {"steps": N}, 1 to )" +
                                std::to_string(StepWindow::kMost));
  }
  return steps.get<std::uint32_t>();
}

// A request that the caller may not make.
class Forbidden : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Forbidden unless the update is that of the page's button: one more worker.
void allow_of_page(const LaunchUpdate& update, const JobStatus& status) {
  // Read at the moment of the request: two presses on a stale page must not add two workers.
  const auto now = static_cast<std::size_t>(std::ranges::count(
      status.tasks, net::Job::kWorker, [](const TaskStatus& task) { return task.id.job; }));
  if (update.options) {
    throw Forbidden(
        "update: options are not allowed from the page, which may ask for {\"workers\": " +
        std::to_string(now + 1) + "}; use `disttf update`");
  }
  if (update.workers != now + 1) {
    throw Forbidden("update: workers is " + std::to_string(update.workers.value_or(0)) +
                    "; the page may ask for one worker more, which is " + std::to_string(now + 1));
  }
}

using Change = std::string (ManagedJob::*)(const net::TaskId&);

// The handler of a request for the whole run; nullptr: there is none of that name.
using VerbHandler = OrderedJson (*)(ManagedJob& job, const std::string& body);

VerbHandler handler_of(std::string_view verb, Caller caller) {
  if (verb == "update" && caller == Caller::kPage) {
    return [](ManagedJob& job, const std::string& body) {
      const LaunchUpdate wanted = read_update(body);
      allow_of_page(wanted, job.status());
      return OrderedJson{{"message", job.update(wanted)}};
    };
  }
  if (verb == "update") {
    return [](ManagedJob& job, const std::string& body) {
      return OrderedJson{{"message", job.update(read_update(body))}};
    };
  }
  if (verb == "save") {
    return [](ManagedJob& job, const std::string& /*body*/) {
      return OrderedJson{{"message", job.save()}};
    };
  }
  if (verb == "trace") {
    return [](ManagedJob& job, const std::string& body) {
      return OrderedJson{{"message", job.trace(read_steps(body))}};
    };
  }
  if (verb == "stop") {
    return [](ManagedJob& job, const std::string& /*body*/) {
      return OrderedJson{{"message", job.stop()}};
    };
  }
  if (verb == "page" && caller == Caller::kControl) {
    return [](ManagedJob& job, const std::string& /*body*/) {
      return OrderedJson{{"url", job.make_page_link()}};
    };
  }
  return nullptr;
}

std::optional<Change> change_from(std::string_view verb) {
  if (verb == "restart") {
    return &ManagedJob::restart;
  }
  return verb == "replace" ? std::optional(&ManagedJob::replace) : std::nullopt;
}

net::HttpReply wrong_method(const net::HttpServerRequest& request, const char* allowed) {
  return net::error_reply(
      net::http_status::kMethodNotAllowed,
      request.method + " " + net::quoted(request.path) + " is not allowed; it takes " + allowed);
}

net::HttpReply answer_get(ManagedJob& job, const std::vector<std::string_view>& parts,
                          const net::HttpServerRequest& request) {
  if (request.method != "GET") {
    return wrong_method(request, "GET");
  }
  if (parts[1] == "logs") {
    return log_reply(job, parts[2], request.query);
  }
  const JobStatus status = job.status();
  return parts[1] == "status"      ? status_reply(status)
         : parts[1] == "endpoints" ? endpoints_reply(status)
                                   : pods_reply(status);
}

const char* allowed_to(Caller caller) {
  return caller == Caller::kPage
             ? "pods/TASK/restart, pods/TASK/replace, update, save, trace and stop"
             : "/v1/status, endpoints, pods, logs/TASK, pods/TASK/restart, "
               "pods/TASK/replace, update, save, trace, stop and page";
}

net::HttpReply answer(ManagedJob& job, const net::HttpServerRequest& request, Caller caller) {
  const std::vector<std::string_view> parts = parts_of(request.path);
  const std::string_view verb = parts.size() > 1 && parts[0] == "v1" ? parts[1] : "";
  // First what is only read, then changes: the method is checked only for paths that exist.
  const bool is_plain = verb == "status" || verb == "endpoints" || verb == "pods";
  const bool reads = (parts.size() == 2 && is_plain) || (parts.size() == 3 && verb == "logs");
  const bool makes_link = parts.size() == 2 && verb == "page";
  // The page has its own view of the run; task logs and new links stay with the control address.
  if (caller == Caller::kPage && (reads || makes_link)) {
    throw Forbidden(net::quoted(request.path) + " is not allowed from the page; allowed are " +
                    allowed_to(caller));
  }
  if (reads) {
    return answer_get(job, parts, request);
  }
  const std::optional<Change> change =
      parts.size() == 4 && verb == "pods" ? change_from(parts[3]) : std::nullopt;
  const VerbHandler tell = parts.size() == 2 ? handler_of(verb, caller) : nullptr;
  // Before the check of the method: an unknown path is 404 with every method.
  if (!change && tell == nullptr) {
    return net::error_reply(
        net::http_status::kNotFound,
        net::quoted(request.path) + " does not exist; allowed are " + allowed_to(caller));
  }
  if (request.method != "POST") {
    return wrong_method(request, "POST");
  }
  if (!change) {
    return json_reply(tell(job, request.body));
  }
  const net::TaskId id = net::task_from_name(parts[2]);
  return json_reply({{"task", task_name(id)}, {"message", (job.**change)(id)}});
}

}  // namespace

const char* name_of(TaskState state) noexcept {
  switch (state) {
    case TaskState::kRunning:
      return "running";
    case TaskState::kFrozen:
      return "frozen";
    case TaskState::kStopping:
      return "stopping";
    case TaskState::kWaiting:
      return "waiting";
    case TaskState::kDone:
      return "done";
    case TaskState::kEnded:
      break;
  }
  return "ended";
}

net::HttpReply answer_verb(ManagedJob& job, const net::HttpServerRequest& request, Caller caller) {
  try {
    return answer(job, request, caller);
    // Other exceptions are faults of the launch; they pass to the HTTP server.
  } catch (const Forbidden& forbidden) {
    return net::error_reply(net::http_status::kForbidden, forbidden.what());
  } catch (const JobRefusal& refusal) {
    return net::error_reply(net::http_status::kConflict, refusal.what());
  } catch (const UnknownTask& unknown) {
    return net::error_reply(net::http_status::kNotFound, unknown.what());
  } catch (const std::invalid_argument& error) {
    return net::error_reply(net::http_status::kBadRequest, error.what());
  }
}

}  // namespace disttf::roles
