// The test accuracy of a run's models, from the records in its --train_dir (docs/records.md). A
// checkpoint does not contain it, because it is evaluated after it is saved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "run/monitor/shell/record_files.h"

namespace disttf::roles {

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

}  // namespace disttf::roles
