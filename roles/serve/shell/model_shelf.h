// The models that are served at one time, and how they change while requests go on: one that comes
// is tried beside those that answer, and then put in their place.
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
#include "roles/model/core/trained_model.h"
#include "roles/serve/core/rest_api.h"
#include "roles/serve/shell/serve_meters.h"

namespace disttf::roles {

// Constant but for the predictors, of which each belongs to the thread with its number.
struct LoadedModel {
  std::uint64_t version = 0;
  std::filesystem::path path;     // that it was read from; empty: from no file
  std::uint64_t files_stamp = 0;  // changes with the files
  TrainedModel model;
  std::vector<std::unique_ptr<math::Predictor>> predictors;
};

using LoadedModels = std::vector<std::shared_ptr<const LoadedModel>>;

// What is served at one time.
struct Shelf {
  LoadedModels models;  // the newest first
  std::vector<VersionStatus> refused;

  // The newest; nullptr: there is none.
  [[nodiscard]] std::shared_ptr<const LoadedModel> newest() const {
    return models.empty() ? nullptr : models.front();
  }
  [[nodiscard]] std::shared_ptr<const LoadedModel> of_version(std::uint64_t version) const;
};

class ModelShelf {
 public:
  // `threads` will ask, each for at most `max_rows` at a time. `meters` must outlive the object.
  ModelShelf(std::size_t threads, std::size_t max_rows, ServeMeters& meters)
      : threads_(threads), max_rows_(max_rows), meters_(meters) {}

  // From any thread. The number changes with the shelf: to ask for it costs nothing.
  [[nodiscard]] std::uint64_t number() const noexcept {
    return number_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::shared_ptr<const Shelf> now() const;

  // The rest is of the one thread that brings models.

  // Ready to answer: each thread's predictor has. `name`: what sentences call it. Throws
  // Failure(kBadData) where its weights are no numbers, or what it says of a row is none.
  [[nodiscard]] std::unique_ptr<LoadedModel> try_out(TrainedModel model,
                                                     const std::string& name) const;
  // From now on these answer, the newest first.
  void publish(LoadedModels models, std::vector<VersionStatus> refused);
  // One that was tried was not good enough.
  void count_refused() { meters_.refused.add(); }

 private:
  const std::size_t threads_;
  const std::size_t max_rows_;
  ServeMeters& meters_;
  std::atomic<std::uint64_t> number_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const Shelf> shelf_ = std::make_shared<Shelf>();  // guarded by mutex_
};

// Where models come from. Of one thread.
class ModelSource {
 public:
  ModelSource() = default;
  virtual ~ModelSource() = default;
  ModelSource(const ModelSource&) = delete;
  ModelSource& operator=(const ModelSource&) = delete;

  // Changes the shelf where there is reason to; waits for nobody.
  virtual void look() = 0;
};

}  // namespace disttf::roles
