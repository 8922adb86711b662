// Which call of which API a request is: TensorFlow Serving's REST API below /v1/models, and the
// Open Inference Protocol below /v2. A pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace disttf::roles {

enum class ApiCall : std::uint8_t {
  kStatus,    // GET /v1/models/NAME[/versions/V|/labels/L]
  kMetadata,  // GET ../metadata
  kPredict,   // POST ..:predict, and so on
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
  std::string_view name = {};  // of the model; a part of the path, as the label
  std::optional<std::uint64_t> version = {};
  std::string_view label = {};  // "latest"; empty: none

  // Whether the model is asked about rows.
  [[nodiscard]] bool is_question() const noexcept {
    return call == ApiCall::kPredict || call == ApiCall::kClassify || call == ApiCall::kRegress ||
           call == ApiCall::kInfer;
  }
};

// `path`: decoded and normal. nullopt: it belongs to neither API. Throws ApiError: 400 where a
// version is no number, 404 where there is no such call, 405 where it wants another method.
[[nodiscard]] std::optional<ApiRoute> api_route(std::string_view method, std::string_view path);

// Whether it is asked by who looks after the service, and says nothing about a model.
[[nodiscard]] bool is_health_path(std::string_view path) noexcept;

// Whether it is answered without a model: health and metrics, by a thread of their own.
[[nodiscard]] bool is_quick_path(std::string_view path) noexcept;

}  // namespace disttf::roles
