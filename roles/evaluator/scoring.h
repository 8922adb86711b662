// Evaluates a model of the run, and reports the result: to standard output, the file of
// --metrics_file, the run's records, TensorBoard's files and the metrics.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "math/model.h"
#include "model/trained_model.h"
#include "roles/chief/shell/summary_writer.h"
#include "roles/evaluator/evaluator.h"
#include "roles/trainer/shell/metrics_file.h"
#include "roles/trainer/shell/run_evaluation.h"
#include "run/monitor/shell/telemetry_files.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {

// Below --log_dir: what TensorBoard calls a run. `eval` has the chief's evaluations.
inline constexpr const char* kEvaluatorEvents = "evaluator";

class Scoring {
 public:
  // Both must outlive it.
  Scoring(const EvaluatorOptions& options, const StopSignal& stop);

  // Evaluates the validation and the test set. Opens the run's data the first time. Throws Failure
  // like open_dataset() and check_data(), and kUsage if there is no such metric as --keep_best
  // names.
  [[nodiscard]] SetEvaluations score(const TrainedModel& model);
  // `is_last`: the run has ended with this model. Throws Failure if training has diverged.
  void tell(const TrainedModel& model, const SetEvaluations& found, bool is_last);

 private:
  void prepare(const RunConfig& config);
  void open_data(const RunConfig& config);
  void write_records(std::uint64_t step, const SetEvaluations& found, bool is_last);
  void write_tensorboard(std::uint64_t step, const SetEvaluations& found);

  const EvaluatorOptions& options_;
  const StopSignal& stop_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::optional<data::Dataset> dataset_;
  std::string prepared_;  // the configuration of model_, as JSON
  std::optional<math::Model> model_;
  MetricsFile metrics_;
  std::optional<RecordFile> records_;  // if there is a --train_dir
  std::optional<EventStream> events_;  // if there is a --log_dir
  std::optional<std::uint64_t> told_;  // the last step reported
};

}  // namespace disttf::roles
