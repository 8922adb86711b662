#include "roles/evaluator/scoring.h"

#include <fmt/format.h>
#include <unistd.h>

#include <new>

#include "data/tensorboard/events.h"
#include "net/wire/cluster.h"
#include "roles/trainer/shell/run_data.h"
#include "run/monitor/core/record.h"
#include "run/monitor/shell/meters.h"
#include "run/monitor/shell/process_facts.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/result_text.h"

namespace disttf::roles {

Scoring::Scoring(const EvaluatorOptions& options, const StopSignal& stop)
    : options_(options), stop_(stop), metrics_(options.trainer.metrics_file) {
  const TrainerOptions& trainer = options.trainer;
  if (!trainer.checkpoint.train_dir.empty()) {
    const ProcessFacts facts = process_facts();
    records_.emplace(trainer.checkpoint.train_dir,
                     // Host and process are in the name, so that several evaluators do not write
                     // into one file.
                     fmt::format("{}-{}-evaluator", facts.host, facts.pid));
  }
  if (!trainer.summaries.directory.empty()) {
    events_.emplace(std::filesystem::path(trainer.summaries.directory) / kEvaluatorEvents);
  }
}

void Scoring::open_data(const RunConfig& config) {
  DataOptions data = options_.trainer.data;
  if (!data.own && data.dataset == nullptr) {
    data.dataset = find_dataset_of_word(config.dataset);
  }
  dataset_.emplace(open_dataset(data, stop_));
}

void Scoring::prepare(const RunConfig& config) {
  require_layers(config, "the evaluator");
  // The configuration's text decides: the same one needs no new model.
  std::string json = to_json(config);
  if (model_ && json == prepared_) {
    return;
  }
  const DataOptions& options = options_.trainer.data;
  const bool is_chosen = options.own || options.dataset != nullptr;
  // A data set that the user has chosen stays, even for another run; check_data() judges it.
  if (!dataset_ || (!is_chosen && dataset_->name != config.dataset)) {  // of another run
    open_data(config);
  }
  check_data(config, *dataset_, options_.trainer.data, "the run trains on");
  const Arithmetic arithmetic = arithmetic_for(config);
  try {
    model_.emplace(config.model, config.batch_size, arithmetic.isa, arithmetic.dtype,
                   threads_of(options_.trainer.task));
  } catch (const std::bad_alloc&) {
    throw Failure(kError,
                  fmt::format("the evaluator does not have the memory for batches of {} images",
                              config.batch_size));
  }
  // Set last: after an exception the next call prepares again.
  prepared_ = std::move(json);
}

SetEvaluations Scoring::score(const TrainedModel& model) {
  prepare(model.config);
  SetEvaluations found =
      evaluate_sets(*model_, model.parameters.span(), *dataset_, model.config.test_shifts);
  // Checked only here, since the kind of labels is known once a model was evaluated.
  if (options_.keep_best) {
    if (const auto why = lacks_metric(*options_.keep_best, found.validation)) {
      throw Failure(kUsage, *why);
    }
  }
  return found;
}

void Scoring::tell(const TrainedModel& model, const SetEvaluations& found, bool is_last) {
  if (Meters* const meters = options_.trainer.task.meters) {
    meters->evaluator().step.set(static_cast<double>(model.step));
    meters->evaluator().train_steps.set(static_cast<double>(model.config.train_steps));
    meters->evaluator().validation.tell(found.validation);
    meters->evaluator().test.tell(found.test);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began_;
  metrics_.append(
      metrics_line({.step = model.step,
                    .seconds = elapsed.count(),
                    .validation = &found.validation,
                    .test = &found.test,
                    .result_classes = is_last ? std::optional(dataset_->class_names) : std::nullopt,
                    .task = net::task_name(options_.trainer.task.self)}));
  write_records(model.step, found, is_last);
  write_tensorboard(model.step, found);
  if (!is_last) {
    print_result(evaluation_line(model.step, found));
    return;
  }
  // Divergence is judged as the chief does, so that both exit alike.
  if (const auto failure = why_no_result(model.config, model.step, found)) {
    throw Failure(*failure);
  }
  print_run_result(model.step, found, dataset_->name, dataset_->class_names,
                   {.classes = options_.trainer.print_classes,
                    .weights_sha256 = options_.trainer.print_weights_hash ? model.weights_sha256
                                                                          : std::string()});
}

// A pipe accepts a line as a whole or not at all; an evaluation is not worth waiting for a reader.
void Scoring::write_records(std::uint64_t step, const SetEvaluations& found, bool is_last) {
  const double time = record_time();
  const std::string line = EvaluationRecord{.step = step,
                                            .is_last = is_last,
                                            .validation = &found.validation,
                                            .test = &found.test,
                                            .task = net::task_name(options_.trainer.task.self)}
                               .to_line(time);
  // The file is written even if nothing reads the pipe.
  if (records_) {
    records_->write(line, {}, time);
  }
  if (options_.trainer.progress_fd >= 0) {
    const std::string text = line + "\n";
    static_cast<void>(::write(options_.trainer.progress_fd, text.data(), text.size()) >= 0);
  }
}

void Scoring::write_tensorboard(std::uint64_t step, const SetEvaluations& found) {
  if (!events_) {
    return;
  }
  const data::EventTime time{.wall_time = record_time(), .step = step};
  // After a rollback the events of later steps become invalid.
  if (!told_ || step <= *told_) {
    events_->owe(data::session_start_event(time));
  }
  told_ = step;
  events_->add(evaluation_event(time, found.validation, found.test));
}

}  // namespace disttf::roles
