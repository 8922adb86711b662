#include "roles/launch/shell/manage.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "data/json/json_text.h"
#include "net/http/http_local.h"
#include "net/http/http_status.h"
#include "roles/launch/shell/control_client.h"
#include "roles/launch/shell/manage_text.h"
#include "roles/launch/shell/status_watch.h"
#include "roles/launch/shell/trace_client.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

// Encodes a name from the command line: only characters that a path may hold pass unchanged.
std::string encoded(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kDigits[byte / 16U];
      out += kDigits[byte % 16U];
    }
  }
  return out;
}

net::LocalHttpRequest request_of(const ManageOptions& options, const std::string& socket) {
  const std::string task = encoded(options.task);
  switch (options.verb) {
    case ManageVerb::kStatus:
    case ManageVerb::kTop:
      return {.socket = socket, .target = "/v1/status", .body = {}};
    case ManageVerb::kPage:
      return {.socket = socket, .method = "POST", .target = "/v1/page", .body = {}};
    case ManageVerb::kEndpoints:
      return {.socket = socket, .target = "/v1/endpoints", .body = {}};
    case ManageVerb::kLogs:
      return {.socket = socket,
              .target = "/v1/logs/" + task + (options.follow ? "?follow=true" : ""),
              .body = {},
              // A followed log may have no lines for hours, so it has no timeout.
              .read_timeout = std::chrono::seconds(options.follow ? 0 : 10)};
    case ManageVerb::kPodsList:
      return {.socket = socket, .target = "/v1/pods", .body = {}};
    case ManageVerb::kPodsRestart:
      return {.socket = socket,
              .method = "POST",
              .target = "/v1/pods/" + task + "/restart",
              .body = {}};
    case ManageVerb::kPodsReplace:
      return {.socket = socket,
              .method = "POST",
              .target = "/v1/pods/" + task + "/replace",
              .body = {}};
    // Handled before this function is called; only an update remains.
    case ManageVerb::kTrace:  // run_trace()
    case ManageVerb::kUpdate:
      break;
  }
  nlohmann::json update = nlohmann::json::object();
  if (options.update.workers) {
    update["workers"] = *options.update.workers;
  }
  if (options.update.options) {
    update["options"] = *options.update.options;
  }
  return {
      .socket = socket, .method = "POST", .target = "/v1/update", .body = data::json_text(update)};
}

// Prints the output of a log at once; in JSON, whole lines.
class LogPrinter {
 public:
  LogPrinter(std::string task, bool json) : task_(std::move(task)), json_(json) {}

  void print(std::string_view piece) {
    // Pieces are passed on as they arrive, so that a last line without a line feed appears, too.
    if (!json_) {
      write_output(piece);
      return;
    }
    rest_ += piece;
    for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      const nlohmann::ordered_json line = {{"task", task_}, {"line", rest_.substr(0, end)}};
      write_output(data::json_text(line) + "\n");
      rest_.erase(0, end + 1);
    }
  }

 private:
  std::string task_;
  bool json_;
  std::string rest_;
};

StatusWatchOptions watch_options(const ManageOptions& options, const std::string& socket) {
  constexpr std::chrono::milliseconds kUsual{2000};
  return {.socket = socket,
          .is_top = options.verb == ManageVerb::kTop,
          .once = options.once,
          .json = options.json,
          .every = options.every.value_or(kUsual),
          .variables = options.variables};
}

}  // namespace

int run_manage(const ManageOptions& options) {
  const std::string socket = find_launch(options.socket, options.directory);
  // These ask the launch repeatedly, in their own loops.
  if (options.every || options.verb == ManageVerb::kTop) {
    return run_status_watch(watch_options(options, socket));
  }
  if (options.verb == ManageVerb::kTrace) {
    return run_trace({.socket = socket,
                      .steps = options.trace_steps,
                      .output = options.trace_output,
                      .json = options.json});
  }
  LogPrinter log(options.task, options.json);
  int status = 0;
  std::string body;
  const std::error_code error =
      net::http_over_local(request_of(options, socket), [&](int code, std::string_view piece) {
        status = code;
        // Logs are printed as they arrive; everything else is an answer to parse, or an error
        // message.
        if (code == net::http_status::kOk && options.verb == ManageVerb::kLogs) {
          log.print(piece);
        } else {
          body += piece;
        }
      });
  if (error) {
    // Also after some output: a log that ends by an error is not complete.
    fail_to_reach(socket, error);
  }
  if (status != net::http_status::kOk) {
    fail_as_reported(status, body);
  }
  if (options.verb == ManageVerb::kStatus && !options.json) {
    write_output(status_text(socket, body, options.variables));
  } else if (options.verb != ManageVerb::kLogs) {
    write_output(options.json ? body : text_of(options.verb, body));
  }
  return kDone;
}

}  // namespace disttf::roles
