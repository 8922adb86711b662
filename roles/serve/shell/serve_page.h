// The browser page of a service, beside the APIs.
//
//   GET /               the page (docs/serve_page.md); GET /assets/FILE: its parts
//   GET /v1/page        {"name", "version", "kind", ...}: of the newest model, for drawing a form
//   of
//                       its inputs
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "roles/serve/shell/model_registry.h"
#include "run/monitor/shell/telemetry_files.h"

namespace disttf::roles {

// The test accuracy of a run's models, from the records in its --train_dir (docs/records.md). A
// checkpoint does not contain it, because it is evaluated after it is saved.
class RunAccuracy {
 public:
  // `directory`: the served one. It may lack records, or not exist yet; empty: there is none.
  explicit RunAccuracy(const std::filesystem::path& directory)
      : directory_(directory), files_(directory) {}

  // Reads new records since the last call. For one thread. Ignores unreadable files, because no
  // answer depends on them.
  void look() noexcept;

  // For any thread.
  [[nodiscard]] std::optional<double> of(std::uint64_t step) const;

 private:
  static constexpr std::size_t kMostSteps = 4096;  // the newest; a few bytes each

  const std::filesystem::path directory_;
  RecordFiles files_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, double> by_step_;  // under the mutex
};

// `name`: of the model. nullopt: the path is not the page's. For any thread.
[[nodiscard]] std::optional<net::HttpReply> page_reply(const net::HttpServerRequest& request,
                                                       std::string_view name,
                                                       const ServedModels& served,
                                                       const RunAccuracy& accuracy);

}  // namespace disttf::roles
