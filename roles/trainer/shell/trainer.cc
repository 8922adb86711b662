#include "roles/trainer/shell/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <new>
#include <tuple>
#include <utility>

#include "data/dataset.h"
#include "math/norm.h"
#include "math/random.h"
#include "model/trained_model.h"
#include "roles/trainer/shell/built_in_source.h"
#include "roles/trainer/shell/program_source.h"
#include "roles/trainer/shell/run_evaluation.h"
#include "run/monitor/shell/process_facts.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/resource_limits.h"
#include "run/process/tensor_memory.h"
#include "run/program/gradient_bits.h"
#include "run/result_text.h"

namespace disttf::roles {
namespace {

std::unique_ptr<GradientSource> make_source(const TrainerOptions& options, StopSignal& stop) {
  if (options.program_fd >= 0) {
    return std::make_unique<ProgramSource>(options, stop);
  }
  return std::make_unique<BuiltInSource>(options, stop);
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, StopSignal& stop)
    : options_(options),
      stop_(stop),
      // Before the data set: heartbeats start while the data is still being loaded.
      background_(options.task, stop),
      source_(make_source(options, stop)),
      progress_(options.progress_fd),
      metrics_(rank() == 0 ? options.metrics_file : std::string()),
      meter_(options.task),
      began_(net::Clock::now()) {
  // Logged once per run: all tasks train on the same data.
  if (const BuiltInSource* const built_in = source_->built_in();
      built_in != nullptr && rank() == 0) {
    for (const std::string& finding : built_in->dataset().findings) {
      log_warning("--data: " + finding);
    }
  }
  open_client();
  fingerprint_ = source_->fingerprint();
  // Last, since the thread calls metrics() from here on.
  background_.tell([this] { return metrics(); },
                   [this](const StepWindow& window) { stages_.trace(window); });
}

void Trainer::open_client() {
  client_.emplace(options_.task, stop_);
  // Heartbeats use every incarnation that the client takes.
  client_->on_incarnation(
      [this](std::uint64_t incarnation) { background_.set_incarnation(incarnation); });
  client_->on_joined([this](net::Generation generation) {
    background_.set_generation(generation);
    meter_.joined(generation);
  });
  background_.on_replaced(
      [replaced = client_->replaced()](std::size_t ps, net::Generation generation) {
        replaced->add(ps, generation);
      });
}

void Trainer::begin_anew() {
  const std::uint64_t incarnation = client_->incarnation();
  reply_ = {};  // its parameters may lie in memory of the links
  kept_result_ = {};
  top_k_.reset();
  source_->begin_anew();
  open_client();
  // The ps know this process under its current incarnation.
  client_->continue_as(incarnation);
  // Heartbeats name no generation until the run is joined again.
  background_.set_generation(0);
}

std::size_t Trainer::rank() const { return options_.task.cluster.rank_of(options_.task.self); }

void Trainer::prepare(const RunConfig& config, std::uint64_t configuration) {
  // The memory is checked before a chief's configuration is used: it is needed for parameters
  // (twice in elastic runs), for gradients, and with top-k for the residual.
  const std::uint64_t copies = 2 + gradients_in_memory(config);
  require_memory(copies * math::layout_of(config.model).size() * sizeof(float),
                 describe(options_.task.cluster, options_.task.self),
                 "the parameters of the run and their gradients");
  try {
    allocate(config, configuration);
  } catch (const std::bad_alloc&) {
    throw Failure(kError, describe(options_.task.cluster, options_.task.self) +
                              " does not have the memory for " +
                              std::to_string(math::layout_of(config.model).parameter_count()) +
                              " parameters, their gradient and batches of " +
                              std::to_string(config.batch_size) +
                              (config.model.is_program() ? " rows" : " images"));
  }
}

void Trainer::allocate(const RunConfig& config, std::uint64_t configuration) {
  config_ = config;
  meter_.prepared(config);
  source_->prepare(config);
  const std::size_t size = layout().size();
  trained_ = layout().trained();
  isa_ = math::isa_name(config.isa).data();
  parameters_ = math::AlignedVector(size);
  next_parameters_ = math::AlignedVector(config.elastic() ? size : 0);
  client_->expect_replicas(config.ps_replicas > 1);
  wire_ = wire_format_of(config);
  if (wire_.components != 0) {
    top_k_.emplace(size, wire_.components, wire_.rounds());
  }
  stepper_.emplace(Stepper::Run{.rank = rank(),
                                .sync_replicas = config.sync_replicas,
                                .fully_synchronous = config.every_gradient_counts(),
                                .micro_batches = config.micro_batches});
  client_->prepare({.size = size,
                    .fully_synchronous = config.every_gradient_counts(),
                    .micro_batches = config.micro_batches,
                    .trainers = config.trainers,
                    .gradients = gradients_in_memory(config),
                    .wire = wire_,
                    .isa = config.isa,
                    .judges_norms = config.max_gradient_norm != 0,
                    .configuration = configuration});
}

bool Trainer::leave() {
  const bool released = client_->await_end();
  // Making the last steps again overwrites the parameters, which are the result already.
  if (stepper_->left(released)) {
    kept_result_ = math::AlignedVector(parameters_.size());
    std::copy_n(parameters_.data(), parameters_.size(), kept_result_.data());
  }
  reply_.finished = stepper_->reply().finished;
  return released;
}

bool Trainer::await_others() {
  const bool are_done = client_->await_others();
  // A lost ps was restored to another state, and the result is not of that state.
  if (!are_done) {
    roll_back();
  }
  return are_done;
}

bool Trainer::peek() {
  const StepReply newest = client_->peek(parameters_.span());
  // A peek that had to join has found another state, from which training goes on.
  const bool are_done = newest.finished || !newest.joined;
  if (!are_done) {
    roll_back();
  }
  return are_done;
}

void Trainer::roll_back() {
  stepper_->roll_back();
  reply_.finished = false;
}

bool Trainer::has_result() {
  stepper_->run_over();
  if (stepper_->next() == Stepper::Action::kFetchFinal) {
    stepper_->fetched(client_->fetch_final(parameters_.span()));
  }
  if (stepper_->result() == Stepper::Result::kKept) {
    // It is the run's result, unless the run has been started again since with another
    // configuration; a ps that is still up reports that.
    static_cast<void>(client_->fetch_final(parameters_.span()));
    std::swap(parameters_, kept_result_);
  }
  reply_ = {stepper_->reply(), parameters_.span()};
  return stepper_->result() != Stepper::Result::kNone;
}

void Trainer::train(const StepHooks& hooks) {
  reply_ = client_->pull(parameters_.span());
  // Rounded, as the parameters of every later step are.
  round_parameters();
  stepper_->replied(reply_);
  log_info(fmt::format("Training begins at global step {}", reply_.step));
  began_ = net::Clock::now();
  const std::uint64_t first_step = reply_.step;
  while (stepper_->next() != Stepper::Action::kLeave) {
    // Asked before each step, so that a run which is joined at its end makes none.
    if (hooks.ends_at && hooks.ends_at(reply_)) {
      end_here();
    } else {
      take_step(hooks);
    }
  }
  if (reply_.parameters.data() != parameters_.data()) {  // in memory of a ps, which may go now
    std::copy(reply_.parameters.begin(), reply_.parameters.end(), parameters_.data());
    reply_.parameters = parameters_.span();
  }
  const std::chrono::duration<double> elapsed = net::Clock::now() - began_;
  if (config_.ps_replicas > 1) {
    const std::vector<std::uint64_t> counts = client_->acknowledged();
    for (std::size_t range = 0; range < counts.size(); ++range) {
      log_info("range " + std::to_string(range) + ": " + std::to_string(counts[range]) +
               " gradients acknowledged");
    }
  }
  log_info(fmt::format("Training elapsed time: {:.3f} s ({:.0f} {}/s)", elapsed.count(),
                       static_cast<double>((reply_.step - std::min(first_step, reply_.step)) *
                                           config_.rows_per_step()) /
                           elapsed.count(),
                       config_.model.is_program() ? "rows" : "images"));
}

float Trainer::compute(const math::Model::OnReady& on_ready) {
  source_->load(stepper_->batch());
  source_->expect(stepper_->batch_after());
  stages_.mark(Stage::kLoad);
  const float loss = [&] {
    const Timed timed(meter_.gradient());
    return source_->gradient(reply_.parameters, client_->begin_gradient(), on_ready, stages_);
  }();
  meter_.computed(config_.batch_size, loss, source_->numbers());
  programs_ = source_->programs();
  // A non-finite loss ends the run here, before it spreads to the parameters.
  if (!std::isfinite(loss)) {
    meter_.diverged();
    std::string text = fmt::format("the loss became {:f} at step {}: {}", loss, reply_.step,
                                   diverged_text(config_));
    // Names the place in which a user looks for the fault in a model of his own.
    if (config_.model.is_program()) {
      if (const auto first = not_finite(source_->layout(), client_->gradient())) {
        text += "; the first non-finite gradient is that of " + *first;
      }
    }
    throw Failure(kError, text);
  }
  reduce_gradient();
  stages_.mark(Stage::kBackward);
  stepper_->computed();
  return loss;
}

void Trainer::reduce_gradient() {
  if (config_.clip_norm != 0) {
    // Clipped before it is rounded: the ps's check of norms allows for the rounding.
    math::clip_by_norm(client_->gradient(), trained_, config_.clip_norm, config_.isa);
  }
  if (top_k_) {
    top_k_->select(client_->gradient());
  } else {
    round_to_wire(wire_, client_->gradient(), client_->gradient());
  }
}

// Independent of how they arrived: in some frames they are rounded already, in others and in shared
// memory they are not. The final parameters stay exact.
void Trainer::round_parameters() {
  if (wire_.rounds() && !reply_.finished) {
    round_to_wire(wire_, reply_.parameters, parameters_.span());
    reply_.parameters = parameters_.span();
  }
}

// Loads the batch that is likely to be next, while the ps work.
void Trainer::load_ahead() {
  source_->load(stepper_->batch_after());
  stages_.mark(Stage::kOverlapped);
}

void Trainer::delay(std::uint64_t local_step) {
  if (options_.max_injected_delay.count() > 0) {
    // By incarnation, so that a restarted process gets other delays.
    const std::uint64_t bits =
        math::random_bits(config_.seed, static_cast<std::uint32_t>(math::Purpose::kInjectedDelay),
                          options_.task.incarnation % math::kStreamLimit, local_step);
    const auto limit = static_cast<std::uint64_t>(options_.max_injected_delay.count());
    stop_.interrupt().wait_until(net::Clock::now() + std::chrono::milliseconds(bits % (limit + 1)));
    stages_.mark(Stage::kBackward);  // it stands for computing; no request is outstanding
  }
}

void Trainer::take_step(const StepHooks& hooks) {
  stop_.throw_if_stopped();
  const std::uint64_t sequence = stepper_->sequence();
  const std::uint64_t local_step = stepper_->made();
  const net::Generation generation = reply_.generation;
  const std::uint64_t step = reply_.step;
  const bool keep_snapshot = hooks.wants_snapshot && hooks.wants_snapshot(reply_.step + 1);
  float loss = 0;
  if (config_.elastic()) {
    delay(local_step);
    loss = take_elastic_step(keep_snapshot);
  } else {
    const auto push_ahead = [&](float loss_of_batch, std::size_t ready) {
      // A non-finite loss is not pushed: compute() throws after this.
      if (std::isfinite(loss_of_batch)) {
        client_->push_ahead(sequence, keep_snapshot, ready);
      }
    };
    // The norm is known only when the gradient is complete.
    const bool ahead = config_.clip_norm == 0 && client_->pushes_ahead();
    // By reference: a larger function object would be allocated in each step.
    loss = compute(ahead ? math::Model::OnReady(std::ref(push_ahead)) : math::Model::OnReady());
    delay(local_step);
    {
      const Timed timed(meter_.push_pull());
      reply_ = client_->push_pull(sequence, parameters_.span(), keep_snapshot, [this] {
        stages_.mark(Stage::kPush);
        load_ahead();
      });
    }
    ++counts_.pushes;
    keep_unused();
  }
  answered();
  round_parameters();
  // A rejoin may also find the same state again.
  if (reply_.joined && reply_.generation != generation) {
    log_info(fmt::format("The run goes on from global step {}, generation {}", reply_.step,
                         net::number_of(reply_.generation)));
  } else if (keep_snapshot && !reply_.joined) {
    hooks.on_snapshot(sequence, reply_);
  }
  if (reply_.joined || reply_.step != step) {  // else the run has ended before the step was made
    meter_.stepped(reply_, config_);
    log_step(local_step + 1, loss);
    if (hooks.on_step) {
      hooks.on_step(loss, reply_);
    }
  }
  stepper_->replied(reply_);
}

void Trainer::answered() {
  counts_.dropped += reply_.dropped != 0 ? 1U : 0U;
  counts_.step = reply_.step;
  if (stages_.is_measuring()) {  // else they are not used
    std::tie(counts_.bytes_sent, counts_.bytes_received) = client_->traffic();
  }
  if (reply_.joined) {
    stages_.give_up();  // the time of joining again belongs to no step
  }
  stages_.answered(counts_, client_->answer_came(), client_->last_ps());
}

std::string Trainer::metrics() {
  // Called on the background thread: only members that are meant for it are read here.
  const std::string isa(isa_.load());
  if (isa.empty()) {
    return {};  // not prepared yet
  }
  StageClock::Taken taken = stages_.take(kMostTracedAtOnce);
  ProcessFacts process = process_facts();
  process.bytes_sent = taken.counts.bytes_sent;
  process.bytes_received = taken.counts.bytes_received;
  return to_json(TrainerMetrics{.task = options_.task.self,
                                .process = std::move(process),
                                .isa = isa,
                                .threads = threads_of(options_.task),
                                .step = taken.counts.step,
                                .pushes = taken.counts.pushes,
                                .dropped = taken.counts.dropped,
                                .samples = std::move(taken.samples),
                                .traced = std::move(taken.traced),
                                .has_more_traced = !taken.is_all_traced,
                                .fingerprint = fingerprint_,
                                .programs = programs_});
}

// After the chief's end of the run. The run may also go on from another state, if a ps was lost
// before all were notified.
void Trainer::end_here() {
  stop_.throw_if_stopped();
  reply_ = client_->peek(parameters_.span());
  if (!reply_.finished && !reply_.joined) {
    throw Failure(kError,
                  "a ps cannot end the run before its last step; start all tasks from "
                  "the same executable");
  }
  round_parameters();
  stepper_->peeked(reply_);
}

// --compress: the part of the gradient that no ps used must not be lost.
void Trainer::keep_unused() {
  if (!top_k_) {
    return;
  }
  if (reply_.joined) {
    top_k_->reset();  // the residual's counterpart may have been rolled back with the ps's state
    return;
  }
  if (reply_.dropped == 0) {
    return;
  }
  for (const math::Range range : client_->dropped_ranges()) {
    top_k_->take_back(range.begin, client_->gradient().subspan(range.begin, range.size()));
  }
}

float Trainer::take_elastic_step(bool keep_snapshot) {
  std::vector<std::uint64_t> missing;
  float loss = 0;
  while (true) {
    while (stepper_->next() == Stepper::Action::kCompute) {
      loss = compute();
      client_->push(stepper_->batch().slot);
      stages_.mark(Stage::kPush);
      ++counts_.pushes;
      stepper_->pushed();
    }
    const Timed timed(meter_.push_pull());
    if (client_->await_step(stepper_->sequence(), next_parameters_.span(), keep_snapshot, reply_,
                            missing, [this] { load_ahead(); })) {
      break;
    }
    stepper_->needs(missing);
  }
  // The parameters that gradients are computed from stay valid until here.
  // Swapped, not copied: the other vector receives the next parameters.
  if (reply_.parameters.data() == next_parameters_.data()) {
    std::swap(parameters_, next_parameters_);
  }
  return loss;
}

void Trainer::log_step(std::uint64_t local_step, float loss) {
  if (options_.log_every != 0 && local_step % options_.log_every == 0) {
    const net::TaskId& self = options_.task.self;
    const std::string name =
        self.job == net::Job::kChief ? "Chief" : "Worker " + std::to_string(self.index);
    log_info(fmt::format("{}: training step {} done (global step: {}, loss: {:.4f})", name,
                         local_step, reply_.step, loss));
  }
  progress_.write({.step = reply_.step,
                   .train_steps = config_.train_steps,
                   .loss = static_cast<double>(loss),
                   .images = reply_.step * config_.rows_per_step(),
                   .are_rows = config_.model.is_program()});
}

SetEvaluations Trainer::evaluate() {
  SetEvaluations found = source_->evaluate(reply_.step, reply_.parameters);
  meter_.evaluated(found.validation, found.test);
  return found;
}

math::Evaluation Trainer::print_evaluation(std::uint64_t step) {
  SetEvaluations found = evaluate();
  print_result(evaluation_line(step, found));
  write_metrics(step, found, /*is_last=*/false);
  return std::move(found.validation);
}

void Trainer::write_metrics(std::uint64_t step, const SetEvaluations& found, bool is_last) {
  const std::chrono::duration<double> elapsed = net::Clock::now() - began_;
  metrics_.append(metrics_line(
      {.step = step,
       .seconds = elapsed.count(),
       .validation = &found.validation,
       .test = &found.test,
       .result_classes = is_last ? std::optional(source_->class_names()) : std::nullopt}));
  if (on_evaluation_) {
    on_evaluation_(step, found.validation, found.test, is_last);
  }
}

std::optional<Failure> Trainer::print_result_lines() {
  const std::string hash =
      options_.print_weights_hash ? weights_hash(layout(), reply_.parameters) : std::string();
  if (!source_->evaluates()) {
    print_weights_hash(hash);
    source_->end(reply_.step, reply_.parameters);
    return std::nullopt;
  }
  progress_.write_evaluation();
  const SetEvaluations found = evaluate();
  if (std::optional<Failure> failure = source_->judge(reply_.step, found)) {
    meter_.diverged();
    return failure;
  }
  write_metrics(reply_.step, found, /*is_last=*/true);
  print_run_result(reply_.step, found, source_->name(), source_->class_names(),
                   {.classes = options_.print_classes, .weights_sha256 = hash});
  source_->end(reply_.step, reply_.parameters);
  return std::nullopt;
}

}  // namespace disttf::roles
