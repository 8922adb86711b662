// What chief and worker have in common: the data, the model, and the loop of steps.
//
//   rows (data) -> loss and gradient (math) -> one request per ps (net) -> new parameters
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/sampler.h"
#include "math/aligned.h"
#include "math/augmentation.h"
#include "math/model.h"
#include "math/top_k.h"
#include "roles/download/dataset_source.h"
#include "roles/monitor/shell/page_server.h"
#include "roles/process/progress.h"
#include "roles/process/stop_signal.h"
#include "roles/run/checkpoint_options.h"
#include "roles/run/outcome.h"
#include "roles/run/run_config.h"
#include "roles/run/summary_options.h"
#include "roles/run/task.h"
#include "roles/trainer/core/stepper.h"
#include "roles/trainer/shell/background.h"
#include "roles/trainer/shell/metrics_file.h"
#include "roles/trainer/shell/ps_client.h"
#include "roles/trainer/shell/run_evaluation.h"
#include "roles/trainer/shell/stage_clock.h"
#include "roles/trainer/shell/step_meter.h"

namespace disttf::roles {

struct TrainerOptions {
  Task task;
  RunConfig config;                      // what this task's command line says
  std::set<std::string> explicit_flags;  // of it: what the user wrote, rather than a default
  DataOptions data;
  std::uint64_t log_every = 500;  // local steps between log lines; 0: none
  bool print_weights_hash = false;
  bool print_classes = false;
  std::string metrics_file;  // of the trainer of rank 0; empty: none
  // Testing: before each push wait a random time of at most this long.
  std::chrono::milliseconds max_injected_delay{0};
  CheckpointOptions checkpoint;          // chief
  SummaryOptions summaries;              // chief
  std::optional<PageOptions> page = {};  // chief; nullopt: none
  int progress_fd = -1;                  // where `launch` reads progress from; -1: nowhere
};

// What the chief does beside the steps; every function on the computing thread.
struct StepHooks {
  // Whether the push that makes `step` is to ask for a cut.
  std::function<bool(std::uint64_t step)> wants_cut;
  // That push, with this sequence, was answered.
  std::function<void(std::uint64_t sequence, const StepReply& reply)> on_cut;
  // Before a step is made of the parameters that this reply brought: whether none is to be, since
  // they are the run's result.
  std::function<bool(const StepReply& reply)> ends_at;
  // A step was made, which this reply has answered; `loss`: of this trainer's last batch of it.
  std::function<void(float loss, const StepReply& reply)> on_step;
};

class Trainer {
 public:
  // Opens the own port and the data set. `options` and `stop` must outlive the trainer. Throws
  // Failure.
  Trainer(const TrainerOptions& options, StopSignal& stop);

  [[nodiscard]] PsClient& client() noexcept { return *client_; }
  [[nodiscard]] Background& background() noexcept { return background_; }
  [[nodiscard]] const data::Dataset& dataset() const noexcept { return dataset_; }
  // For a worker whose chief trains on the built-in digits.
  void use_built_in(const DatasetRow& dataset);

  // The run has another configuration than this trainer was prepared for: as if this process had
  // just begun, with another client() that has to connect, and prepare() to come.
  void begin_anew();

  // Makes the model that `config` describes; before the calls below. `configuration`:
  // configuration_id() of what was published.
  void prepare(const RunConfig& config, std::uint64_t configuration);
  [[nodiscard]] const RunConfig& config() const noexcept { return config_; }
  // The whole parameter vector as this trainer last saw it.
  [[nodiscard]] std::span<const float> parameters() const noexcept { return reply_.parameters; }
  [[nodiscard]] const math::Model& model() const noexcept { return *model_; }

  // Joins the run and trains until its last step has been made; again, if the ps were set back
  // since.
  void train(const StepHooks& hooks);
  // Worker: then waits until the chief has made the result durable. False: the ps were set back
  // meanwhile to a state from which this worker is needed again; train() follows.
  [[nodiscard]] bool leave();
  // Chief: then waits until the others have the result too. False: another chief has set the ps to
  // a state from which there are steps to be made still; train() follows.
  [[nodiscard]] bool await_others();
  // Chief, where not every gradient counts: the parameters become those that the ps hold now, with
  // the others' last pushes. False: as await_others().
  [[nodiscard]] bool peek();
  // When the run is over: whether this trainer has its result, or can still have it from the ps.
  // Throws OtherConfiguration where that is another run's.
  [[nodiscard]] bool has_result();

  // Prints the validation cross-entropy as the tutorials do. Returns what was found on the
  // validation set.
  math::Evaluation print_evaluation(std::uint64_t step);
  // The result line, "MNIST accuracy: 0.9771", and the hash of the weights if it was asked for. Or
  // nothing, when training has diverged: then what the task is to end with.
  [[nodiscard]] std::optional<Failure> print_result_lines();
  // Called with what either of these two finds.
  using OnEvaluation = std::function<void(std::uint64_t step, const math::Evaluation& validation,
                                          const math::Evaluation& test, bool is_last)>;
  void on_evaluation(OnEvaluation hook) { on_evaluation_ = std::move(hook); }
  // What the model has made of the first `rows` examples of the test set before its last layer:
  // [rows, numbers] of them. REQUIRES: no more than there are.
  [[nodiscard]] std::vector<float> last_inputs(std::size_t rows);
  // Where the last pull or push has brought it.
  [[nodiscard]] const StepReply& reply() const noexcept { return reply_; }

 private:
  SetEvaluations evaluate();
  // Adds a line to --metrics_file, where this is the task that does, and tells on_evaluation().
  void write_metrics(std::uint64_t step, const SetEvaluations& found, bool is_last);
  void open_client();
  void allocate(const RunConfig& config, std::uint64_t configuration);
  void set_back();
  void take_step(const StepHooks& hooks);
  // Chief: the parameters in hand are the run's result.
  void end_here();
  // Computes the micro-batches that are this trainer's, then those that turn out to be missing,
  // until the step has been made. Returns the last loss.
  float take_elastic_step(bool cut);
  // The gradient of the batch that is next.
  float compute(const math::Model::OnReady& on_ready = {});
  // How this trainer does, as JSON; empty: it has not begun. On the background thread.
  [[nodiscard]] std::string metrics();
  void answered();
  // Makes of the gradient, in its place, what is pushed of it.
  void reduce_gradient();
  void keep_unused();
  // The parameters that came become those that a gradient is computed from.
  void round_parameters();
  // Which rows that batch is of, into rows_, if they are not there.
  void draw(const Stepper::Batch& batch);
  void load(const Stepper::Batch& batch);
  void load_ahead();
  void delay(std::uint64_t local_step);
  void log_step(std::uint64_t local_step, float loss);
  [[nodiscard]] std::size_t rank() const;
  [[nodiscard]] math::ImageSet train_set() const;

  const TrainerOptions& options_;
  const StopSignal& stop_;
  StageClock stages_;
  std::atomic<const char*> isa_ = "";  // once it is known
  StageClock::Counts counts_;          // the computing thread's
  Background background_;
  data::Dataset dataset_;
  bool uses_built_in_ = false;      // instead of what the options say
  std::optional<PsClient> client_;  // always there, but for a moment of begin_anew()
  ProgressWriter progress_;
  MetricsFile metrics_;
  OnEvaluation on_evaluation_;
  StepMeter meter_;
  net::Clock::time_point began_;  // the last train()
  RunConfig config_;
  WireFormat wire_;
  std::optional<math::Model> model_;
  std::vector<math::Range> trained_;  // of the vector; the rest is running statistics
  std::optional<data::Sampler> sampler_;
  std::optional<math::AugmentedBatch> augmented_;  // where images are changed at random
  std::optional<math::TopK> top_k_;                // --compress: what has not been pushed yet
  math::AlignedVector parameters_;
  math::AlignedVector next_parameters_;  // elastic: received into while `parameters_` is needed
  std::vector<std::uint32_t> rows_;
  std::optional<Stepper::Batch> drawn_;   // which one rows_ are of
  std::optional<Stepper::Batch> loaded_;  // which one the model has
  std::optional<Stepper> stepper_;
  StepReply reply_;
  // Strict mode: the result, while the ps make it a second time. Every time has the same bits.
  math::AlignedVector kept_result_;
};

}  // namespace disttf::roles
