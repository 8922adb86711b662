// The models that are served: what lies in a directory, read beside the one that answers, tried,
// and put in its place while requests go on.
//
// What may lie there: checkpoints, as a run's --train_dir has them, whose steps are the versions;
// or directories whose names are whole numbers, each with a model
// (roles/model/shell/model_files.h); or the directory is one model itself. What cannot be read, is
// damaged, half copied, or tells what is no number is refused, and looked at again when its files
// change.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
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
  std::filesystem::path path;
  std::uint64_t files_stamp = 0;  // changes with the files
  TrainedModel model;
  std::vector<std::unique_ptr<math::Predictor>> predictors;
};

// What is served at one time.
struct Shelf {
  std::vector<std::shared_ptr<const LoadedModel>> models;  // the newest first
  std::vector<VersionStatus> refused;

  // The newest; nullptr: there is none.
  [[nodiscard]] std::shared_ptr<const LoadedModel> newest() const {
    return models.empty() ? nullptr : models.front();
  }
  [[nodiscard]] std::shared_ptr<const LoadedModel> of_version(std::uint64_t version) const;
};

class ServedModels {
 public:
  // `keep`: so many versions at once. `threads` will ask, each for at most `max_rows` at a time.
  // `meters` must outlive the object.
  ServedModels(std::filesystem::path directory, std::size_t keep, std::size_t threads,
               std::size_t max_rows, ServeMeters& meters);

  // Looks at the directory once, and changes the shelf where there is reason to. Of one thread.
  // Throws Failure(kUsage) where there is no such directory.
  void look();

  // From any thread. The number changes with the shelf: to ask for it costs nothing.
  [[nodiscard]] std::uint64_t shelf_number() const noexcept {
    return number_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::shared_ptr<const Shelf> shelf() const;

 private:
  struct Candidate {
    std::filesystem::path path;
    std::optional<std::uint64_t> version;  // nullopt: the model's step
    bool is_checkpoint = false;
  };
  struct Refused {
    std::filesystem::path path;
    std::uint64_t files_stamp = 0;
    // It is tried again then, or when its files change: a disk that failed may be well again.
    std::chrono::steady_clock::time_point again;
    VersionStatus status;
  };

  [[nodiscard]] std::vector<Candidate> candidates() const;
  [[nodiscard]] std::shared_ptr<const LoadedModel> loaded(const Candidate& candidate,
                                                          std::uint64_t stamp) const;
  std::shared_ptr<const LoadedModel> load(const Candidate& candidate, std::uint64_t stamp);
  [[nodiscard]] std::unique_ptr<LoadedModel> read(const Candidate& candidate) const;
  void refuse(const Candidate& candidate, std::uint64_t stamp, const std::string& sentence,
              bool may_pass);
  void publish(std::vector<std::shared_ptr<const LoadedModel>> models);

  const std::filesystem::path directory_;
  const std::size_t keep_;
  const std::size_t threads_;
  const std::size_t max_rows_;
  ServeMeters& meters_;
  // Of who looks.
  std::vector<Refused> refused_;
  std::uint64_t refusals_ = 0;  // so far
  std::string awaited_;         // what was said of a directory without a model
  // Of all.
  std::atomic<std::uint64_t> number_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const Shelf> shelf_ = std::make_shared<Shelf>();  // guarded by mutex_
};

}  // namespace disttf::roles
