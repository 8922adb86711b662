// The models that lie in a directory, which may come to be there, or be filled, later.
//
// What may lie there: checkpoints, as a run's --train_dir has them, whose steps are the versions;
// or directories whose names are whole numbers, each with a model
// (roles/model/shell/model_files.h); or the directory is one model itself. What cannot be read, is
// damaged, half copied, or tells what is no number is refused, and looked at again when its files
// change.
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
#include "roles/serve/shell/model_shelf.h"

namespace disttf::roles {

class DirectoryModels final : public ModelSource {
 public:
  // `keep`: so many versions at once. `shelf` must outlive the object.
  DirectoryModels(std::filesystem::path directory, std::size_t keep, ModelShelf& shelf);

  // Throws Failure(kUsage) where it is no directory, std::system_error where it cannot be read.
  void look() override;

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

  [[nodiscard]] bool is_there();
  void say_once(const std::string& sentence);
  void say_not_there();
  [[nodiscard]] std::vector<Candidate> candidates() const;
  [[nodiscard]] std::shared_ptr<const LoadedModel> loaded(const Candidate& candidate,
                                                          std::uint64_t stamp) const;
  std::shared_ptr<const LoadedModel> load(const Candidate& candidate, std::uint64_t stamp);
  [[nodiscard]] std::unique_ptr<LoadedModel> read(const Candidate& candidate) const;
  void refuse(const Candidate& candidate, std::uint64_t stamp, const std::string& sentence,
              bool may_pass);
  void publish(LoadedModels models);

  const std::filesystem::path directory_;
  const std::size_t keep_;
  ModelShelf& shelf_;
  std::vector<Refused> refused_;
  std::uint64_t refusals_ = 0;  // so far
  std::string said_;            // of a directory without a model; empty: it has some
};

}  // namespace disttf::roles
