#include "roles/launch/shell/manage.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <vector>

#include "net/http/http_local.h"
#include "net/wire/text.h"
#include "roles/launch/shell/control_address.h"
#include "roles/launch/shell/control_verbs.h"
#include "roles/launch/shell/manage_text.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

constexpr int kOk = 200;
constexpr int kFirstServerError = 500;

// Names come from the command line; only what a path may hold is passed on as it is.
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
      return {.socket = socket, .target = "/v1/status", .body = {}};
    case ManageVerb::kEndpoints:
      return {.socket = socket, .target = "/v1/endpoints", .body = {}};
    case ManageVerb::kLogs:
      return {.socket = socket,
              .target = "/v1/logs/" + task + (options.follow ? "?follow=true" : ""),
              .body = {},
              .silence = std::chrono::seconds(options.follow ? 0 : 10)};
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
  return {.socket = socket,
          .method = "POST",
          .target = "/v1/update",
          .body = update.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

std::string find_socket(const ManageOptions& options) {
  if (!options.socket.empty()) {
    return options.socket;
  }
  const std::vector<std::string> found = find_control_sockets(options.directory);
  if (found.empty()) {
    throw Failure(kError, "no launch of this user is running: there is no control address in " +
                              net::quoted(options.directory) + " (--control names another)");
  }
  if (found.size() > 1) {
    std::string names;
    for (const std::string& each : found) {
      names += (names.empty() ? "" : ", ") + each;
    }
    throw Failure(kError, std::to_string(found.size()) +
                              " launches are running; --control says which: " + names);
  }
  return found.front();
}

void write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot write to standard output");
  }
}

// What a log has brought, printed at once; as JSON, whole lines.
class LogPrinter {
 public:
  LogPrinter(std::string task, bool json) : task_(std::move(task)), json_(json) {}

  void print(std::string_view piece) {
    if (!json_) {
      write_out(piece);
      return;
    }
    rest_ += piece;
    for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      const nlohmann::ordered_json line = {{"task", task_}, {"line", rest_.substr(0, end)}};
      write_out(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
      rest_.erase(0, end + 1);
    }
  }

 private:
  std::string task_;
  bool json_;
  std::string rest_;
};

[[noreturn]] void fail_to_reach(const std::string& socket, const std::error_code& error) {
  if (error == std::errc::no_such_file_or_directory || error == std::errc::connection_refused) {
    throw Failure(kError, "no launch is running at " + net::quoted(socket));
  }
  if (error == std::errc::permission_denied || error == std::errc::filename_too_long ||
      error == std::errc::not_a_socket) {
    throw Failure(kError, "--control: " + net::quoted(socket) + ": " + error.message());
  }
  throw Failure(kLostPeers, "the launch at " + net::quoted(socket) +
                                " does not answer any more: " + error.message());
}

[[noreturn]] void fail_as_told(int status, const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const std::string sentence =
      json.is_object() && json.contains("error") && json["error"].is_string()
          ? json["error"].get<std::string>()
          : "the launch answered with status " + std::to_string(status);
  const bool is_late = status == kConflict || status >= kFirstServerError;
  throw Failure(is_late ? kError : kUsage, net::one_line(sentence));
}

}  // namespace

int run_manage(const ManageOptions& options) {
  const std::string socket = find_socket(options);
  LogPrinter log(options.task, options.json);
  int status = 0;
  std::string body;
  const std::error_code error =
      net::http_over_local(request_of(options, socket), [&](int code, std::string_view piece) {
        status = code;
        if (code == kOk && options.verb == ManageVerb::kLogs) {
          log.print(piece);
        } else {
          body += piece;
        }
      });
  if (error) {
    fail_to_reach(socket, error);
  }
  if (status != 0 && status != kOk) {
    fail_as_told(status, body);
  }
  if (options.verb != ManageVerb::kLogs) {
    write_out(options.json ? body : text_of(options.verb, body));
  }
  return kDone;
}

}  // namespace disttf::roles
