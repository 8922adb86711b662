// Every metric that a task exports to Prometheus, a row each: the source of name, type and help in
// the exposition, and of the table in docs/metrics.md. A released name never changes its meaning.
//
// Names follow Prometheus' conventions: one prefix, base units (seconds, bytes), _total for
// counters, _info for constants. Metrics of the process have the names and help texts of
// Prometheus' own client libraries.
//
// Constants; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace disttf::roles {

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram, kInfo };

// In the order of the exposition.
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
  kProgramNumber,
  kProgramEvaluation,
  // Trainers and ps
  kBytes,
  // Ps
  kPsStep,
  kPsFinished,
  kPsGeneration,
  kPsTrainers,
  kPsMissingGradients,
  kPsPushes,
  kPsRejectedGradients,
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
  // Without _total or _info, which the type appends.
  std::string_view name;
  MetricType type;
  std::string_view unit;    // "seconds", "bytes", if the name ends in it; empty: a plain number
  std::string_view labels;  // besides `task`: "direction, codec"
  std::string_view tasks;   // the tasks that export it
  std::string_view help;    // one sentence without a full stop
};

// One row per Metric, in order.
[[nodiscard]] std::span<const MetricRow> metric_rows() noexcept;
[[nodiscard]] const MetricRow& row_of(Metric metric) noexcept;

// Upper bounds of a histogram's buckets, in its unit, without the last bucket, which is unbounded.
// REQUIRES: the metric is a histogram.
[[nodiscard]] std::span<const double> bounds_of(Metric metric) noexcept;

}  // namespace disttf::roles
