#include "roles/serve/core/api_route.h"

#include <array>
#include <charconv>
#include <span>
#include <string>
#include <system_error>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

constexpr std::string_view kLivePath = "/v2/health/live";
constexpr std::string_view kReadyPath = "/v2/health/ready";

constexpr int kNoSuchCall = 404;
constexpr int kOtherMethod = 405;

// Takes the text before the first separator off `text`; the separator stays.
std::string_view take_until(std::string_view& text, std::string_view separators) {
  const std::string_view part = text.substr(0, text.find_first_of(separators));
  // At most the whole text: without a separator the part is all of it.
  text.remove_prefix(part.size());
  return part;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

std::uint64_t version_from(std::string_view text) {
  std::uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  // A well-formed number that no version can have: not found, rather than malformed.
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) {
    throw ApiError(kNoSuchCall, "version " + net::quoted(text) + " is out of range");
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    throw BadRequest("version: " + net::quoted(text) + " is not a whole number from 0 on");
  }
  return version;
}

struct PathEnding {
  std::string_view text;
  ApiCall call;
};

constexpr std::array<PathEnding, 5> kRestEndings = {{{"", ApiCall::kStatus},
                                                     {"/metadata", ApiCall::kMetadata},
                                                     {":predict", ApiCall::kPredict},
                                                     {":classify", ApiCall::kClassify},
                                                     {":regress", ApiCall::kRegress}}};
constexpr std::array<PathEnding, 3> kInferenceEndings = {
    {{"", ApiCall::kModel}, {"/ready", ApiCall::kModelReady}, {"/infer", ApiCall::kInfer}}};

// Whether `text` is one of the endings; sets the route's call.
bool take_ending(std::string_view text, std::span<const PathEnding> endings, ApiRoute& route) {
  for (const PathEnding& each : endings) {
    if (text == each.text) {
      route.call = each.call;
      return true;
    }
  }
  return false;
}

// Parses NAME and the rest of the path.
bool take_model(std::string_view rest, bool is_rest, ApiRoute& route) {
  // A colon ends a name as well: "NAME:predict".
  route.name = take_until(rest, "/:");
  if (take(rest, "/versions/")) {
    route.version = version_from(take_until(rest, "/:"));
  } else if (is_rest && take(rest, "/labels/")) {
    route.label = take_until(rest, "/:");
    if (route.label.empty()) {
      return false;
    }
  }
  // The rest must match completely, so a path with more parts is not found.
  return !route.name.empty() && (is_rest ? take_ending(rest, kRestEndings, route)
                                         : take_ending(rest, kInferenceEndings, route));
}

bool take_path(std::string_view path, ApiRoute& route) {
  std::string_view rest = path;
  if (take(rest, "/v1/models/")) {
    return take_model(rest, /*is_rest=*/true, route);
  }
  if (take(rest, "/v2/models/")) {
    return take_model(rest, /*is_rest=*/false, route);
  }
  route.call = path == kLivePath    ? ApiCall::kLive
               : path == kReadyPath ? ApiCall::kReady
                                    : ApiCall::kServer;
  return route.call != ApiCall::kServer || path == "/v2";
}

}  // namespace

bool is_health_path(std::string_view path) noexcept {
  return path == kLivePath || path == kReadyPath;
}

bool is_quick_path(std::string_view path) noexcept {
  return is_health_path(path) || path == "/metrics";
}

std::optional<ApiRoute> api_route(std::string_view method, std::string_view path) {
  const bool is_api = path.starts_with("/v1/models") || path == "/v2" || path.starts_with("/v2/");
  // The page, its files and /metrics have other paths.
  if (!is_api) {
    return std::nullopt;
  }
  ApiRoute route;
  if (!take_path(path, route)) {
    throw ApiError(kNoSuchCall, net::quoted(path) +
                                    " is not a call of this API; calls are "
                                    "/v1/models/NAME:predict, /v2/models/NAME/infer and others");
  }
  // After the path: a wrong method on an unknown path is a 404.
  const bool fits = route.is_question() ? method == "POST" : method == "GET" || method == "HEAD";
  if (!fits) {
    throw ApiError(kOtherMethod,
                   net::quoted(path) + (route.is_question() ? " takes POST" : " takes GET"));
  }
  return route;
}

}  // namespace disttf::roles
