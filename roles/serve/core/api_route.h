// Which call of which API a request is: TensorFlow Serving's REST API below /v1/models, and the
// Open Inference Protocol below /v2. A pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace disttf::roles {

enum class ApiCall : std::uint8_t {
  kStatus,    // GET /v1/models/NAME[/versions/V|/labels/L]
  kMetadata,  // GET ../metadata
  kPredict,   // POST ..:predict; the next two likewise
  kClassify,
  kRegress,
  kServer,      // GET /v2
  kLive,        // GET /v2/health/live
  kReady,       // GET /v2/health/ready
  kModel,       // GET /v2/models/NAME[/versions/V]
  kModelReady,  // GET ../ready
  kInfer,       // POST ../infer
};

struct ApiRoute {
  ApiCall call = ApiCall::kServer;
  std::string_view name = {};  // of the model; points into the path, as the label does
  std::optional<std::uint64_t> version = {};
  std::string_view label = {};  // "latest"; empty: none

  // Whether the call sends rows to the model.
  [[nodiscard]] bool is_question() const noexcept {
    return call == ApiCall::kPredict || call == ApiCall::kClassify || call == ApiCall::kRegress ||
           call == ApiCall::kInfer;
  }
};

// `path` is decoded and normalized. nullopt: it belongs to neither API. Throws ApiError: 400 for a
// malformed version, 404 for an unknown call, 405 for a wrong method.
[[nodiscard]] std::optional<ApiRoute> api_route(std::string_view method, std::string_view path);

// Whether the path is a health check of the service rather than a call about a model.
[[nodiscard]] bool is_health_path(std::string_view path) noexcept;

// Whether the path is served without a model, by a separate thread: health and metrics.
[[nodiscard]] bool is_quick_path(std::string_view path) noexcept;

// A request's error as the APIs report it: a status and one sentence.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& sentence)
      : std::runtime_error(sentence), status_(status) {}
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

// The request is malformed, or does not fit the model.
class BadRequest : public ApiError {
 public:
  explicit BadRequest(const std::string& sentence) : ApiError(400, sentence) {}
};

}  // namespace disttf::roles
