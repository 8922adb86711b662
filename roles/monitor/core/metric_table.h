// Every metric that a task exports to Prometheus: one row each, from which the exposition takes
// name, type and help, and docs/metrics.md its table. A name that was released is never given
// another meaning.
//
// Names are as Prometheus' conventions have them: one prefix, base units (seconds, bytes), _total
// for what only grows, _info for what is constant. Those of the process itself have the names, and
// the words, that Prometheus' own client libraries give them.
//
// Constants; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace disttf::roles {

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram, kInfo };

// In the order in which they are exported.
enum class Metric : std::uint8_t {
  kBuildInfo,
  // Trainers
  kStep,
  kTrainSteps,
  kLoss,
  kLearningRate,
  kExamples,
  kLocalSteps,
  kGradientSeconds,
  kPushPullSeconds,
  kDroppedGradients,
  kReconnects,
  kGeneration,
  kDiverged,
  kEvaluationLoss,
  kEvaluationAccuracy,
  // Trainers and ps
  kBytes,
  // Ps
  kPsStep,
  kPsFinished,
  kPsGeneration,
  kPsTrainers,
  kPsMissingGradients,
  kPsPushes,
  kPsBadGradients,
  kPsApplySeconds,
  kPsWaitForLastSeconds,
  kPsStaleness,
  kPsPrimary,
  kPsReplicas,
  kPsReplicaLag,
  kPsView,
  kPsViewChanges,
  // The chief
  kCheckpointSaves,
  kCheckpointLastSuccess,
  kCheckpointBytes,
  kCheckpointSeconds,
  // Launch
  kRunStep,
  kRunTrainSteps,
  kRunLoss,
  kRunExamples,
  kRunExamplesPerSecond,
  kChildren,
  kChildRunning,
  kChildRestarts,
  // Serve
  kServeRequests,
  kServeSeconds,
  kServeRows,
  kServeBatchRows,
  kServeWaitingRows,
  kServeConnections,
  kServeModelVersion,
  kServeModelLoads,
  kServeReady,
  kServeRangeWarnings,
  // The process
  kProcessCpu,
  kProcessMemory,
  kProcessOpenFds,
  kProcessMaxFds,
  kProcessStart,
};
inline constexpr std::size_t kMetrics = static_cast<std::size_t>(Metric::kProcessStart) + 1;

struct MetricRow {
  Metric metric;
  // Without _total or _info, which the type adds.
  std::string_view name;
  MetricType type;
  std::string_view unit;    // "seconds", "bytes"; of a name that ends in it. Empty: a number
  std::string_view labels;  // beside `task`: "direction, codec"
  std::string_view tasks;   // which ones have it
  std::string_view help;    // one sentence without a full stop
};

// One for each Metric, in order.
[[nodiscard]] std::span<const MetricRow> metric_rows() noexcept;
[[nodiscard]] const MetricRow& row_of(Metric metric) noexcept;

// Upper bounds of a histogram's buckets, in its unit, but for the last one, which takes all.
// REQUIRES: the metric is a histogram.
[[nodiscard]] std::span<const double> bounds_of(Metric metric) noexcept;

}  // namespace disttf::roles
