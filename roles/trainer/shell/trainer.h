// What chief and worker share: where gradients come from, and the loop of steps.
//
//  a batch -> loss and gradient (gradient_source.h) -> one request per ps (net) -> new parameters
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "math/aligned.h"
#include "math/model.h"
#include "math/top_k.h"
#include "roles/trainer/core/stepper.h"
#include "roles/trainer/shell/background.h"
#include "roles/trainer/shell/gradient_source.h"
#include "roles/trainer/shell/metrics_file.h"
#include "roles/trainer/shell/ps_client.h"
#include "roles/trainer/shell/run_evaluation.h"
#include "roles/trainer/shell/stage_clock.h"
#include "roles/trainer/shell/step_meter.h"
#include "run/monitor/shell/page_server.h"
#include "run/outcome.h"
#include "run/output_options.h"
#include "run/process/progress.h"
#include "run/process/stop_signal.h"
#include "run/run_config.h"
#include "run/task.h"
#include "storage/download/dataset_source.h"

namespace disttf::roles {

struct TrainerOptions {
  Task task;
  RunConfig config;                      // from this task's command line
  std::set<std::string> explicit_flags;  // flags that the user wrote, without defaults
  DataOptions data;
  std::uint64_t log_every = 500;  // local steps between log lines; 0: none
  bool print_weights_hash = false;
  bool print_classes = false;
  std::string metrics_file;  // at the trainer of rank 0; empty: none
  // Testing: before each push, wait for a random time of at most this.
  std::chrono::milliseconds max_injected_delay{0};
  CheckpointOptions checkpoint;          // chief
  SummaryOptions summaries;              // chief
  std::optional<PageOptions> page = {};  // chief; nullopt: none
  int progress_fd = -1;                  // where `launch` reads progress; -1: none
  // The socket to the supervisor of this task and of a user's program, which computes the gradients
  // instead of a built-in model; -1: there is none.
  int program_fd = -1;
  // How long such a program may take for a gradient, see ProgramSession; 0: no limit.
  std::chrono::seconds program_timeout{60};
  // Steps after which such a program computes a gradient twice, so that its bits are compared; 0:
  // never.
  std::uint64_t check_gradients = 0;
};

// The chief's work besides the steps; every function is called on the computing thread.
struct StepHooks {
  // Returns whether the push that makes `step` is to request a snapshot.
  std::function<bool(std::uint64_t step)> wants_snapshot;
  // The push of this sequence was answered.
  std::function<void(std::uint64_t sequence, const StepReply& reply)> on_snapshot;
  // Called before a step is made from the parameters of this reply. Returns whether they are the
  // run's result, so that no step is to be made.
  std::function<bool(const StepReply& reply)> ends_at;
  // This reply has answered a step that was made; `loss`: of this trainer's last batch in it.
  std::function<void(float loss, const StepReply& reply)> on_step;
};

class Trainer {
 public:
  // Opens the task's own port and the data set, or waits for the program. `options` and `stop` must
  // outlive the trainer. Throws Failure.
  Trainer(const TrainerOptions& options, StopSignal& stop);

  [[nodiscard]] PsClient& client() noexcept { return *client_; }
  [[nodiscard]] Background& background() noexcept { return background_; }
  [[nodiscard]] GradientSource& source() noexcept { return *source_; }
  [[nodiscard]] const GradientSource& source() const noexcept { return *source_; }

  // The run has another configuration than this trainer was prepared for: starts over as if the
  // process had just begun, with another client() that has to connect, and prepare() to follow.
  void begin_anew();

  // Prepares for the run that `config` describes; to be called before the calls below.
  // `configuration`: configuration_id() of the published one.
  void prepare(const RunConfig& config, std::uint64_t configuration);
  [[nodiscard]] const RunConfig& config() const noexcept { return config_; }
  // The whole parameter vector as received last.
  [[nodiscard]] std::span<const float> parameters() const noexcept { return reply_.parameters; }
  [[nodiscard]] const math::ParameterLayout& layout() const { return source_->layout(); }

  // Joins the run and trains until its last step has been made; again, if the ps were rolled back
  // since.
  void train(const StepHooks& hooks);
  // Worker: then waits until the chief has made the result durable. Returns false if the ps were
  // rolled back meanwhile to a state from which this worker is needed again; train() follows.
  [[nodiscard]] bool leave();
  // Chief: then waits until the other trainers have the result, too. Returns false if another chief
  // has restored the ps to a state with steps still to be made; train() follows.
  [[nodiscard]] bool await_others();
  // Chief, if not every gradient counts: fetches the parameters that the ps hold now, with the
  // other trainers' last pushes. Returns false as await_others().
  [[nodiscard]] bool peek();
  // When the run is over: returns whether this trainer has its result, or can still fetch it from
  // the ps. Throws OtherConfiguration if that is another run's.
  [[nodiscard]] bool has_result();

  // Prints the validation cross-entropy as the tutorials do. Returns the evaluation of the
  // validation set.
  math::Evaluation print_evaluation(std::uint64_t step);
  // Prints the result line, "MNIST accuracy: 0.9771", and, if requested, the hash of the weights;
  // a worker whose program evaluates nothing prints the hash alone. If training has diverged,
  // prints nothing and returns how the task is to end.
  [[nodiscard]] std::optional<Failure> print_result_lines();
  // Called with the results of these two functions.
  using OnEvaluation = std::function<void(std::uint64_t step, const math::Evaluation& validation,
                                          const math::Evaluation& test, bool is_last)>;
  void on_evaluation(OnEvaluation hook) { on_evaluation_ = std::move(hook); }
  // The result of the last pull or push.
  [[nodiscard]] const StepReply& reply() const noexcept { return reply_; }

 private:
  SetEvaluations evaluate();
  // Adds a line to --metrics_file, if this task writes it, and calls on_evaluation().
  void write_metrics(std::uint64_t step, const SetEvaluations& found, bool is_last);
  void open_client();
  void allocate(const RunConfig& config, std::uint64_t configuration);
  void roll_back();
  void take_step(const StepHooks& hooks);
  // Chief: the current parameters are the run's result.
  void end_here();
  // Computes this trainer's micro-batches, then those that turn out to be missing, until the step
  // has been made. Returns the last loss.
  float take_elastic_step(bool keep_snapshot);
  // Computes the gradient of the next batch.
  float compute(const math::Model::OnReady& on_ready = {});
  // Returns this trainer's metrics as JSON; empty before it has begun. Runs on the background
  // thread.
  [[nodiscard]] std::string metrics();
  void answered();
  // Replaces the gradient by the part of it that is pushed.
  void reduce_gradient();
  void keep_unused();
  // Rounds received parameters to those that gradients are computed from.
  void round_parameters();
  // Loads the batch that is likely to be next, while the ps work.
  void load_ahead();
  void delay(std::uint64_t local_step);
  void log_step(std::uint64_t local_step, float loss);
  [[nodiscard]] std::size_t rank() const;

  const TrainerOptions& options_;
  const StopSignal& stop_;
  StageClock stages_;
  std::atomic<const char*> isa_ = "";  // "" until it is known
  // Of the program. The background thread reads it, and outlives source_.
  std::map<std::string, std::string> fingerprint_;
  std::atomic<std::uint64_t> programs_{0};
  StageClock::Counts counts_;  // of the computing thread
  Background background_;
  const std::unique_ptr<GradientSource> source_;
  std::optional<PsClient> client_;  // always set, except for a moment in begin_anew()
  ProgressWriter progress_;
  MetricsFile metrics_;
  OnEvaluation on_evaluation_;
  StepMeter meter_;
  net::Clock::time_point began_;  // the last train()
  RunConfig config_;
  WireFormat wire_;
  std::vector<math::Range> trained_;  // of the vector; the rest are running statistics
  std::optional<math::TopK> top_k_;   // --compress: the residual
  math::AlignedVector parameters_;
  math::AlignedVector next_parameters_;  // elastic: receives while `parameters_` are in use
  std::optional<Stepper> stepper_;
  StepReply reply_;
  // Fully synchronous: the result, while the ps compute it a second time. It is bit-identical each
  // time.
  math::AlignedVector kept_result_;
};

}  // namespace disttf::roles
