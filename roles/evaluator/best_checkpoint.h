// The best checkpoint of a run, in a directory of its own below --train_dir, which the run does not
// read when it saves and removes: `DIR/best/checkpoint-00000500`. Its files are hard links. So they
// take no space while the run keeps that checkpoint as well, and stay complete when the run removes
// it. If the file system has no hard links, they are copies.
//
// A checkpoint is held while it is judged, under a name that readers ignore, so that the best one
// cannot disappear meanwhile. A kept checkpoint is always complete: after a power cut or a kill the
// directory has the previous one, the new one, or both.
//
// Not thread-safe: one process at a time.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/file_system.h"
#include "math/evaluation.h"
#include "storage/checkpoint/core/checkpoint_reader.h"

namespace disttf::roles {

inline constexpr std::string_view kBestDirectory = "best";

class BestCheckpoint {
 public:
  // `files` must outlive it.
  BestCheckpoint(data::FileSystem& files, std::filesystem::path train_dir);

  // Functions that write throw std::system_error with a sentence that names a path.

  // Removes what an earlier process has left incomplete.
  void clear();
  // Returns the kept checkpoints, newest first. More than one, if a process was killed between
  // keeping one and removing the other.
  [[nodiscard]] std::vector<CheckpointName> kept() const;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  // Holds a checkpoint of --train_dir. Returns where it is held; nullopt if it has gone. `attempt`:
  // a different number each time.
  [[nodiscard]] std::optional<std::filesystem::path> hold(const CheckpointName& name,
                                                          std::uint64_t attempt);
  // Keeps the held one as the best.
  std::filesystem::path keep();
  // Drops the held one.
  void drop() noexcept;
  // Removes all kept ones but this one.
  void keep_only(const CheckpointName& name);

 private:
  [[nodiscard]] std::error_code take(const std::filesystem::path& from,
                                     const std::filesystem::path& to);
  void copy(const std::filesystem::path& from, const std::filesystem::path& to);

  data::FileSystem* files_;
  std::filesystem::path train_dir_;
  std::filesystem::path path_;  // DIR/best
  std::filesystem::path held_;  // empty: none is held
  SaveId id_;                   // of the held one
};

// --keep_best: the metric by which one checkpoint of a run is better than another. All metrics are
// of the validation set: a choice by the test set would make its result meaningless for new
// examples.
//
// Values and pure functions; callable from any thread.
enum class BestMetric : std::uint8_t { kAccuracy, kLoss, kAbsoluteError, kSquaredError };
inline constexpr std::array<std::string_view, 4> kBestMetricNames = {
    "accuracy", "loss", "absolute_error", "squared_error"};
[[nodiscard]] std::string_view best_metric_name(BestMetric metric) noexcept;
[[nodiscard]] std::optional<BestMetric> best_metric_from_name(std::string_view name) noexcept;

// Returns why the evaluation has no such metric, if it has none.
[[nodiscard]] std::optional<std::string> lacks_metric(BestMetric metric,
                                                      const math::Evaluation& found);
// REQUIRES: the evaluation has the metric.
[[nodiscard]] double value_of(BestMetric metric, const math::Evaluation& found) noexcept;
// Strictly better; NaN is worse than any number.
[[nodiscard]] bool is_better(BestMetric metric, double value, double than) noexcept;

}  // namespace disttf::roles
