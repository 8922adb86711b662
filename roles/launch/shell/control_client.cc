#include "roles/launch/shell/control_client.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "data/json/json_text.h"
#include "net/http/http_session.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "roles/launch/shell/control_address.h"
#include "roles/launch/shell/control_verbs.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

// A view has at most seven series of 2000 points each.
constexpr std::size_t kMostAnswerBytes = std::size_t{32} << 20U;
// The launch answers from memory on one thread; one that takes longer is stopped or stuck.
constexpr std::chrono::seconds kReadTimeout{2};

}  // namespace

std::string find_launch(const std::string& socket, const std::string& directory) {
  if (!socket.empty()) {
    return socket;
  }
  const std::vector<std::string> found = find_control_sockets(directory);
  if (found.empty()) {
    throw Failure(kError, "no launch of this user is running: there is no control address in " +
                              net::quoted(directory) + " (--control names another)");
  }
  // A command such as update must not pick one of several runs by itself.
  if (found.size() > 1) {
    throw Failure(kError, std::to_string(found.size()) +
                              " launches are running; choose one with --control: " +
                              net::joined(found, ", "));
  }
  return found.front();
}

LaunchAnswer ask_launch(const std::string& socket, const std::string& target,
                        const std::string& body) {
  LaunchAnswer answer;
  answer.error = net::http_over_local({.socket = socket,
                                       .method = body.empty() ? "GET" : "POST",
                                       .target = target,
                                       .body = body,
                                       .read_timeout = kReadTimeout},
                                      [&answer](int status, std::string_view piece) {
                                        answer.status = status;
                                        // Drops what exceeds the bound; the caller's parser then
                                        // rejects the answer.
                                        if (answer.body.size() + piece.size() <= kMostAnswerBytes) {
                                          answer.body += piece;
                                        }
                                      });
  return answer;
}

std::string ask_or_fail(const std::string& socket, const std::string& target,
                        const std::string& body) {
  LaunchAnswer answer = ask_launch(socket, target, body);
  if (answer.error) {
    fail_to_reach(socket, answer.error);
  }
  if (!answer.is_ok()) {
    fail_as_reported(answer.status, answer.body);
  }
  return std::move(answer.body);
}

std::vector<std::string> running_tasks(const std::string& socket, const std::string& directory) {
  std::vector<std::string> names;
  const std::vector<std::string> sockets =
      socket.empty() ? find_control_sockets(directory) : std::vector<std::string>{socket};
  for (const std::string& each : sockets) {
    const LaunchAnswer answer = ask_launch(each, "/v1/pods");
    const auto json = answer.is_ok() ? data::parse_json(answer.body) : nlohmann::json();
    // Completion needs no error messages: a launch that does not answer contributes no names.
    for (const auto& name : json.is_array() ? json : nlohmann::json::array()) {
      if (name.is_string() && std::ranges::find(names, name.get<std::string>()) == names.end()) {
        names.push_back(name.get<std::string>());
      }
    }
  }
  return names;
}

void fail_to_reach(const std::string& socket, const std::error_code& error) {
  if (error == std::errc::no_such_file_or_directory || error == std::errc::connection_refused) {
    throw Failure(kError, "no launch is running at " + net::quoted(socket));
  }
  if (error == std::errc::permission_denied || error == std::errc::filename_too_long ||
      error == std::errc::not_a_socket) {
    throw Failure(kError, "--control: " + net::quoted(socket) + ": " + error.message());
  }
  // The connection succeeded and then broke: a retry may work, as the exit code says.
  throw Failure(kLostPeers, "the launch at " + net::quoted(socket) +
                                " does not answer any more: " + error.message());
}

void fail_as_reported(int status, std::string_view body) {
  std::string sentence = data::member_text(data::parse_json(body), "error");
  if (sentence.empty()) {
    sentence = "the launch answered with status " + std::to_string(status);
  }
  // A conflict or a server error may pass, so it is not the user's mistake.
  const bool is_late =
      status == net::http_status::kConflict || status >= net::http_status::kServerError;
  throw Failure(is_late ? kError : kUsage, net::one_line(sentence));
}

}  // namespace disttf::roles
