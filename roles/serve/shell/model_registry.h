// The model registry: the models served at one time, and their replacement while requests continue.
// A new model is tried out beside the present ones, and then replaces them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "math/predictor.h"
#include "model/trained_model.h"
#include "roles/serve/core/rest_api.h"
#include "roles/serve/shell/serve_meters.h"

namespace disttf::roles {

// Constant except for the predictors, each of which belongs to the thread with its number.
struct LoadedModel {
  std::uint64_t version = 0;
  std::filesystem::path path;           // where it was read from; empty: from no file
  std::uint64_t files_fingerprint = 0;  // changes with the files
  TrainedModel model;
  std::vector<std::unique_ptr<math::Predictor>> predictors;
};

using LoadedModels = std::vector<std::shared_ptr<const LoadedModel>>;

// The models served at one time.
struct ServedModels {
  LoadedModels models;  // newest first
  std::vector<VersionStatus> refused;

  // The newest model; nullptr: there is none.
  [[nodiscard]] std::shared_ptr<const LoadedModel> newest() const {
    return models.empty() ? nullptr : models.front();
  }
  [[nodiscard]] std::shared_ptr<const LoadedModel> of_version(std::uint64_t version) const;
};

class ModelRegistry {
 public:
  // `threads` use the models, each with at most `max_rows` at a time. `meters` must outlive the
  // object.
  ModelRegistry(std::size_t threads, std::size_t max_rows, ServeMeters& meters)
      : threads_(threads), max_rows_(max_rows), meters_(meters) {}

  // For any thread. Changes with the models; reading it is cheap, so threads poll it.
  [[nodiscard]] std::uint64_t number() const noexcept {
    return number_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::shared_ptr<const ServedModels> now() const;

  // The functions below are for the one thread that loads models.

  // Prepares a model for requests: runs each thread's predictor once. `name` is for messages.
  // Throws Failure(kBadData) if its weights or outputs are not finite.
  [[nodiscard]] std::unique_ptr<LoadedModel> try_out(TrainedModel model,
                                                     const std::string& name) const;
  // Replaces the served models; newest first.
  void publish(LoadedModels models, std::vector<VersionStatus> refused);
  // Counts a model that was tried out and rejected.
  void count_refused() { meters_.refused.add(); }

 private:
  const std::size_t threads_;
  const std::size_t max_rows_;
  ServeMeters& meters_;
  std::atomic<std::uint64_t> number_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const ServedModels> served_ =
      std::make_shared<ServedModels>();  // guarded by mutex_
};

// The source of models. For one thread.
class ModelSource {
 public:
  ModelSource() = default;
  virtual ~ModelSource() = default;
  ModelSource(const ModelSource&) = delete;
  ModelSource& operator=(const ModelSource&) = delete;

  // Updates the registry if models have changed; does not block.
  virtual void look() = 0;
};

}  // namespace disttf::roles
