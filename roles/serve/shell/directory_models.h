// The models in a directory, which may appear, or be filled, later.
//
// The directory contains checkpoints, as a run's --train_dir does, whose steps are the versions; or
// folders named by whole numbers, each with a model (model/model_files.h); or it is one
// model itself. Unreadable, damaged and half-copied models, and those with non-finite outputs, are
// rejected, and tried again when their files change.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roles/serve/core/rest_api.h"
#include "roles/serve/shell/model_registry.h"

namespace disttf::roles {

class DirectoryModels final : public ModelSource {
 public:
  // `keep`: the most versions at once. `registry` must outlive the object.
  DirectoryModels(std::filesystem::path directory, std::size_t keep, ModelRegistry& registry);

  // Throws Failure(kUsage) if it is no directory, std::system_error if it cannot be read.
  void look() override;

 private:
  struct Candidate {
    std::filesystem::path path;
    std::optional<std::uint64_t> version;  // nullopt: the model's own step
    bool is_checkpoint = false;
  };
  struct Refused {
    std::filesystem::path path;
    std::uint64_t files_fingerprint = 0;
    // When to try again, unless its files change earlier: a failed disk may recover.
    std::chrono::steady_clock::time_point again;
    VersionStatus status;
  };

  [[nodiscard]] bool is_there();
  void say_once(const std::string& sentence);
  void say_not_there();
  [[nodiscard]] std::vector<Candidate> candidates() const;
  [[nodiscard]] std::shared_ptr<const LoadedModel> loaded(const Candidate& candidate,
                                                          std::uint64_t fingerprint) const;
  std::shared_ptr<const LoadedModel> load(const Candidate& candidate, std::uint64_t fingerprint);
  [[nodiscard]] std::unique_ptr<LoadedModel> read(const Candidate& candidate);
  void refuse(const Candidate& candidate, std::uint64_t fingerprint, const std::string& sentence,
              bool may_pass);
  void publish(LoadedModels models);

  const std::filesystem::path directory_;
  const std::size_t keep_;
  ModelRegistry& registry_;
  std::vector<Refused> refused_;
  std::uint64_t refusals_ = 0;  // so far
  bool has_program_ = false;    // a user's program was found, which cannot be served
  std::string said_;            // the last message about a directory without models; empty: none
};

}  // namespace disttf::roles
