// How accurate the models of a run were on its test set, as the records in its --train_dir tell it
// (docs/records.md): a checkpoint does not know, since it is evaluated when it has been saved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "roles/monitor/shell/record_files.h"

namespace disttf::roles {

class RunAccuracy {
 public:
  // `directory`: that which is served. It need have no records, nor be there yet; empty: there is
  // none.
  explicit RunAccuracy(const std::filesystem::path& directory)
      : directory_(directory), files_(directory) {}

  // Reads what has come since the last call. Of one thread. What cannot be read is left alone:
  // nobody is answered otherwise for it.
  void look() noexcept;

  // From any thread.
  [[nodiscard]] std::optional<double> of(std::uint64_t step) const;

 private:
  static constexpr std::size_t kMostSteps = 4096;  // the newest; a few bytes each

  const std::filesystem::path directory_;
  RecordFiles files_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, double> by_step_;  // under the mutex
};

}  // namespace disttf::roles
