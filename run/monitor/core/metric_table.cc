#include "run/monitor/core/metric_table.h"

#include <array>
#include <cassert>

namespace disttf::roles {
namespace {

using enum MetricType;

constexpr std::string_view kAll = "all";
constexpr std::string_view kTrainers = "chief, worker";
constexpr std::string_view kEvaluators = "chief, worker, evaluator";
constexpr std::string_view kTasks = "chief, worker, ps";
constexpr std::string_view kPs = "ps";
constexpr std::string_view kChief = "chief";
constexpr std::string_view kLaunch = "launch";
constexpr std::string_view kServe = "serve";

constexpr std::array<MetricRow, kMetrics> kRows = {{
    {Metric::kBuildInfo, "disttf_build", kInfo, "", "version, isa", kAll,
     "Always 1; the version of disttf and the instruction set of this task"},
    {Metric::kStep, "disttf_step", kGauge, "", "", kEvaluators,
     "Global step of this task's parameters"},
    {Metric::kTrainSteps, "disttf_train_steps", kGauge, "", "", kEvaluators,
     "Global steps after which the run ends"},
    {Metric::kLoss, "disttf_loss", kGauge, "", "", kTrainers, "Loss of this trainer's last batch"},
    {Metric::kLearningRate, "disttf_learning_rate", kGauge, "", "", kTrainers,
     "Learning rate of the next step"},
    {Metric::kExamples, "disttf_examples", kCounter, "", "", kTrainers,
     "Examples for which this trainer has computed gradients"},
    {Metric::kLocalSteps, "disttf_local_steps", kCounter, "", "", kTrainers,
     "Steps to which this trainer has contributed"},
    {Metric::kGradientSeconds, "disttf_gradient_seconds", kHistogram, "seconds", "", kTrainers,
     "Time to compute the gradient of a loaded batch"},
    {Metric::kPushPullSeconds, "disttf_push_pull_seconds", kHistogram, "seconds", "", kTrainers,
     "Time from a ready gradient until the parameters of the next step have arrived"},
    {Metric::kDroppedGradients, "disttf_dropped_gradients", kCounter, "", "", kTrainers,
     "Gradients of this trainer that arrived too late for their step at one or more ps"},
    {Metric::kReconnects, "disttf_reconnects", kCounter, "", "", kTrainers,
     "Reconnections to a ps after a lost connection"},
    {Metric::kGeneration, "disttf_generation", kGauge, "", "", kTrainers,
     "Generation of the run that this trainer has joined: 1 at first, incremented after each loss "
     "of a ps"},
    {Metric::kDiverged, "disttf_diverged", kGauge, "", "", kTrainers,
     "1 once a loss was not finite, or the result is worse than guessing"},
    {Metric::kEvaluationLoss, "disttf_evaluation_loss", kGauge, "", "set", kEvaluators,
     "Loss found by the last evaluation"},
    {Metric::kEvaluationAccuracy, "disttf_evaluation_accuracy", kGauge, "", "set", kEvaluators,
     "Share of examples, from 0 to 1, that the last evaluation classified correctly"},
    {Metric::kProgramNumber, "disttf_program_number", kGauge, "", "name", kTrainers,
     "Number that a user's program gave with this trainer's last gradient"},
    {Metric::kProgramEvaluation, "disttf_program_evaluation_number", kGauge, "", "name", kChief,
     "Number that a user's program gave with its last evaluation, besides loss and accuracy"},
    {Metric::kBytes, "disttf_transferred_bytes", kCounter, "bytes", "direction, codec", kTasks,
     "Bytes sent and received between trainers and ps; codec memory: read in shared memory"},
    {Metric::kPsStep, "disttf_ps_step", kGauge, "", "range", kPs,
     "Updates applied to this range of the parameters"},
    {Metric::kPsFinished, "disttf_ps_finished", kGauge, "", "range", kPs,
     "1 once this range has completed the last step of the run"},
    {Metric::kPsGeneration, "disttf_ps_generation", kGauge, "", "range", kPs,
     "Generation that a chief has set for this range: 1 at first, incremented after each loss of a "
     "ps"},
    {Metric::kPsTrainers, "disttf_ps_trainers", kGauge, "", "range", kPs, "Connected trainers"},
    {Metric::kPsMissingGradients, "disttf_ps_missing_gradients", kGauge, "", "range", kPs,
     "Gradients of the present step that have not arrived"},
    {Metric::kPsPushes, "disttf_ps_pushes", kCounter, "", "range, result", kPs,
     "Gradients that were used, dropped as too late, or duplicates"},
    {Metric::kPsRejectedGradients, "disttf_ps_bad_gradients", kCounter, "", "range", kPs,
     "Gradients that were not finite, or larger than --max_gradient_norm"},
    {Metric::kPsApplySeconds, "disttf_ps_apply_seconds", kHistogram, "seconds", "range", kPs,
     "Time to add the last gradient of a step and to update the parameters"},
    {Metric::kPsWaitForLastSeconds, "disttf_ps_wait_for_last_seconds", kHistogram, "seconds",
     "range", kPs, "Time from a step's first gradient to its last"},
    {Metric::kPsStaleness, "disttf_ps_staleness_steps", kHistogram, "", "range", kPs,
     "Asynchronous: updates by others between a trainer's parameters and its push"},
    {Metric::kPsPrimary, "disttf_ps_primary", kGauge, "", "range", kPs,
     "1 if this host is the range's primary, 0 if it is the backup"},
    {Metric::kPsReplicas, "disttf_ps_replicas", kGauge, "", "range", kPs,
     "With --ps_replicas 2: hosts with a complete copy of the range, according to its primary"},
    {Metric::kPsReplicaLag, "disttf_ps_replica_lag_updates", kGauge, "", "range", kPs,
     "With --ps_replicas 2: entries neither acknowledged by the backup nor handed off to it"},
    {Metric::kPsView, "disttf_ps_view", kGauge, "", "range", kPs,
     "With --ps_replicas 2: number of the newest view of the range that the chief has sent"},
    {Metric::kPsViewChanges, "disttf_ps_view_changes", kCounter, "", "range", kPs,
     "With --ps_replicas 2: views that this host has received after the first one"},
    {Metric::kCheckpointSaves, "disttf_checkpoint_saves", kCounter, "", "result", kChief,
     "Attempts to write a checkpoint, by result"},
    {Metric::kCheckpointLastSuccess, "disttf_checkpoint_last_success_timestamp_seconds", kGauge,
     "seconds", "", kChief, "When a checkpoint was last written, since the epoch"},
    {Metric::kCheckpointBytes, "disttf_checkpoint_bytes", kGauge, "bytes", "", kChief,
     "Size of the tensors in the last checkpoint"},
    {Metric::kCheckpointSeconds, "disttf_checkpoint_save_seconds", kHistogram, "seconds", "",
     kChief, "Time from the request of a snapshot until its checkpoint is durable"},
    {Metric::kRunStep, "disttf_run_step", kGauge, "", "", kLaunch, "Global step of the run"},
    {Metric::kRunTrainSteps, "disttf_run_train_steps", kGauge, "", "", kLaunch,
     "Global steps after which the run ends"},
    {Metric::kRunLoss, "disttf_run_loss", kGauge, "", "", kLaunch,
     "Loss of the chief's newest batch"},
    {Metric::kRunExamples, "disttf_run_examples", kCounter, "", "", kLaunch,
     "Examples that all trainers together have trained on, since the run began"},
    {Metric::kRunExamplesPerSecond, "disttf_run_examples_per_second", kGauge, "", "", kLaunch,
     "Mean since the chief's process began to train"},
    {Metric::kChildren, "disttf_children", kGauge, "", "state", kLaunch, "Tasks in this state"},
    {Metric::kChildRunning, "disttf_child_running", kGauge, "", "child", kLaunch,
     "1 while a process of the task lives"},
    {Metric::kChildRestarts, "disttf_child_restarts", kCounter, "", "child", kLaunch,
     "Restarts of the task"},
    {Metric::kServeRequests, "disttf_serve_requests", kCounter, "", "code", kServe,
     "Answered requests, by status"},
    {Metric::kServeSeconds, "disttf_serve_request_seconds", kHistogram, "seconds", "", kServe,
     "Time from a complete request to the model until its answer is written"},
    {Metric::kServeRows, "disttf_serve_rows", kCounter, "", "", kServe,
     "Rows for which the model has answered"},
    {Metric::kServeBatchRows, "disttf_serve_batch_rows", kHistogram, "", "", kServe,
     "Rows of a batch"},
    {Metric::kServeWaitingRows, "disttf_serve_waiting_rows", kGauge, "", "thread", kServe,
     "Rows that wait for a compute thread"},
    {Metric::kServeConnections, "disttf_serve_connections", kGauge, "", "", kServe,
     "Open connections"},
    {Metric::kServeModelVersion, "disttf_serve_model_version", kGauge, "", "", kServe,
     "Newest served version: the step of a checkpoint"},
    {Metric::kServeModelLoads, "disttf_serve_model_loads", kCounter, "", "result", kServe,
     "Models that were read: served, or rejected as damaged or not finite"},
    {Metric::kServeReady, "disttf_serve_ready", kGauge, "", "", kServe,
     "1 while a model is loaded and no signal to end has come"},
    {Metric::kServeRangeWarnings, "disttf_serve_input_range_warnings", kCounter, "", "", kServe,
     "Requests whose pixels did not look like values from 0 to 255"},
    {Metric::kProcessCpu, "process_cpu_seconds", kCounter, "seconds", "", kAll,
     "Total user and system CPU time spent in seconds."},
    {Metric::kProcessMemory, "process_resident_memory_bytes", kGauge, "bytes", "", kAll,
     "Resident memory size in bytes."},
    {Metric::kProcessOpenFds, "process_open_fds", kGauge, "", "", kAll,
     "Number of open file descriptors."},
    {Metric::kProcessMaxFds, "process_max_fds", kGauge, "", "", kAll,
     "Maximum number of open file descriptors."},
    {Metric::kProcessStart, "process_start_time_seconds", kGauge, "seconds", "", kAll,
     "Start time of the process since unix epoch in seconds."},
}};

constexpr bool rows_are_in_order() {
  for (std::size_t each = 0; each < kRows.size(); ++each) {
    if (kRows[each].metric != static_cast<Metric>(each)) {
      return false;
    }
  }
  return true;
}
// row_of() indexes the table by the metric.
static_assert(rows_are_in_order());

// A gradient of the default model takes 0.3 ms, one of a large model seconds; a ps step that reads
// shared memory in place takes 20 us.
constexpr std::array kSeconds = {0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001,
                                 0.0025,  0.005,    0.01,    0.025,  0.05,    0.1,    0.25,
                                 0.5,     1.0,      2.5,     5.0,    10.0,    25.0,   50.0};
constexpr std::array kSteps = {0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0};

}  // namespace

std::span<const MetricRow> metric_rows() noexcept { return kRows; }

const MetricRow& row_of(Metric metric) noexcept { return kRows[static_cast<std::size_t>(metric)]; }

std::span<const double> bounds_of(Metric metric) noexcept {
  assert(row_of(metric).type == kHistogram);
  const bool counts = metric == Metric::kPsStaleness || metric == Metric::kServeBatchRows;
  // Every other histogram is of times.
  return counts ? std::span<const double>(kSteps) : kSeconds;
}

}  // namespace disttf::roles
