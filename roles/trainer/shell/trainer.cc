#include "roles/trainer/shell/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <new>
#include <utility>

#include "data/sha256.h"
#include "math/random.h"
#include "roles/process/log.h"
#include "roles/process/machine.h"
#include "roles/run/format.h"
#include "roles/trainer/core/divergence.h"

namespace disttf::roles {
namespace {

math::ImageSet image_set(const data::Split& split) {
  return {.images = split.images, .labels = split.labels};
}

std::string diverged(double learning_rate) {
  return format("training has diverged; a lower --learning_rate than %g may help", learning_rate);
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, StopSignal& stop)
    : options_(options),
      stop_(stop),
      background_(options.task, stop),
      dataset_(open_dataset(options.data, stop)),
      client_(options.task, stop),
      progress_(options.progress_fd) {}

void Trainer::use_digits() { dataset_ = open_digits_dataset(options_.data); }

std::size_t Trainer::rank() const { return options_.task.cluster.rank_of(options_.task.self); }

math::ImageSet Trainer::train_set() const { return image_set(dataset_.train); }

void Trainer::prepare(const RunConfig& config) {
  try {
    allocate(config);
  } catch (const std::bad_alloc&) {
    throw Failure(kError, describe(options_.task.cluster, options_.task.self) +
                              " has not the memory for " +
                              std::to_string(math::layout_of(config.model).parameter_count()) +
                              " parameters, their gradient and batches of " +
                              std::to_string(config.batch_size) + " images");
  }
}

void Trainer::allocate(const RunConfig& config) {
  config_ = config;
  model_.emplace(config.model, config.batch_size, config.isa, config.compute_dtype,
                 threads_of(options_.task));
  const std::size_t size = model_->layout().size();
  parameters_ = math::AlignedVector(size);
  next_parameters_ = math::AlignedVector(config.elastic() ? size : 0);
  rows_.resize(config.batch_size);
  sampler_.emplace(
      data::SamplerOptions{.seed = config.seed,
                           .purpose = static_cast<std::uint32_t>(math::Purpose::kPermutation),
                           .rows = static_cast<std::uint32_t>(dataset_.train.labels.size()),
                           .batch_size = config.batch_size,
                           .trainers = config.slots(),
                           .random_bits = &math::random_bits});
  if (config.ps_replicas > 1) {
    client_.expect_replicas();
  }
  wire_ = wire_format_of(config);
  if (wire_.components != 0) {
    top_k_.emplace(size, wire_.components, wire_.rounds());
  }
  client_.prepare({.size = size,
                   .strict = config.every_gradient_counts(),
                   .elastic = config.elastic(),
                   .trainers = config.trainers,
                   .wire = wire_});
}

void Trainer::keep_result() {
  if (std::exchange(reply_.finished, false) && config_.every_gradient_counts()) {
    kept_result_ = math::AlignedVector(parameters_.size());
    std::ranges::copy(parameters_.span(), kept_result_.data());
  }
}

bool Trainer::has_result() {
  if (config_.every_gradient_counts() && (reply_.finished || kept_result_.size() != 0)) {
    if (!reply_.finished) {
      std::swap(parameters_, kept_result_);
      reply_ = {.parameters = parameters_.span(), .step = config_.train_steps, .finished = true};
    }
    return true;
  }
  // What the last pushes of others have made since counts too.
  const std::optional<std::uint64_t> step = client_.fetch_final(parameters_.span());
  reply_ = {.parameters = parameters_.span(), .step = step.value_or(0), .finished = true};
  return step.has_value();
}

void Trainer::train(const StepHooks& hooks) {
  keep_result();
  reply_ = client_.pull(parameters_.span());
  round_parameters();
  log_info(
      format("Training begins at global step %llu", static_cast<unsigned long long>(reply_.step)));
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t first_step = reply_.step;
  std::uint64_t local_step = 0;
  while (!reply_.finished) {
    take_step(local_step, hooks);
    ++local_step;
    if (hooks.after_step) {
      hooks.after_step(reply_.step);
    }
  }
  if (reply_.parameters.data() != parameters_.data()) {  // in memory of a ps, which may go now
    std::ranges::copy(reply_.parameters, parameters_.data());
    reply_.parameters = parameters_.span();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  if (config_.ps_replicas > 1) {
    const std::vector<std::uint64_t> counts = client_.acknowledged();
    for (std::size_t range = 0; range < counts.size(); ++range) {
      log_info("range " + std::to_string(range) + ": " + std::to_string(counts[range]) +
               " gradients acknowledged");
    }
  }
  log_info(format("Training elapsed time: %.3f s (%.0f images/s)", elapsed.count(),
                  static_cast<double>((reply_.step - std::min(first_step, reply_.step)) *
                                      config_.rows_per_step()) /
                      elapsed.count()));
}

float Trainer::compute(std::uint64_t step, std::size_t slot, const math::Model::OnReady& on_ready) {
  if (loaded_ != Batch{.step = step, .slot = slot}) {
    load(step, slot);
  }
  const float loss = model_->gradient_of_batch(reply_.parameters, client_.gradient(), on_ready);
  if (!std::isfinite(loss)) {
    throw Failure(kError, format("the loss became %f at step %llu: ", static_cast<double>(loss),
                                 static_cast<unsigned long long>(reply_.step)) +
                              diverged(static_cast<double>(config_.optimizer.learning_rate)));
  }
  reduce_gradient();
  return loss;
}

void Trainer::reduce_gradient() {
  if (top_k_) {
    top_k_->select(client_.gradient());
  } else {
    round_to_wire(wire_, client_.gradient(), client_.gradient());
  }
}

// Whatever they came in: in some frames they are rounded already, in others and in memory that a ps
// shares they are not. The final ones stay exact.
void Trainer::round_parameters() {
  if (wire_.rounds() && !reply_.finished) {
    round_to_wire(wire_, reply_.parameters, parameters_.span());
    reply_.parameters = parameters_.span();
  }
}

void Trainer::load(std::uint64_t step, std::size_t slot) {
  sampler_->batch(step, slot, rows_);
  model_->load(train_set(), rows_);
  loaded_ = {.step = step, .slot = slot};
}

void Trainer::delay(std::uint64_t local_step) {
  if (options_.max_injected_delay.count() > 0) {
    const std::uint64_t bits =
        math::random_bits(config_.seed, static_cast<std::uint32_t>(math::Purpose::kInjectedDelay),
                          options_.task.incarnation % math::kStreamLimit, local_step);
    const auto limit = static_cast<std::uint64_t>(options_.max_injected_delay.count());
    stop_.interrupt().wait_until(net::Clock::now() + std::chrono::milliseconds(bits % (limit + 1)));
  }
}

void Trainer::take_step(std::uint64_t local_step, const StepHooks& hooks) {
  stop_.throw_if_stopped();
  const std::uint64_t sequence = local_step + 1;
  const std::uint32_t generation = reply_.generation;
  background_.set_generation(generation);
  const bool cut = hooks.wants_cut && hooks.wants_cut(reply_.step + 1);
  float loss = 0;
  if (config_.elastic()) {
    delay(local_step);
    loss = take_elastic_step(sequence, cut);
  } else {
    // Async: each trainer walks its own slices of the epochs, at its own pace.
    const std::uint64_t step = config_.sync_replicas ? reply_.step : local_step;
    const auto push_ahead = [&](float loss_of_batch, std::size_t ready) {
      if (std::isfinite(loss_of_batch)) {
        client_.push_ahead(sequence, cut, ready);
      }
    };
    // By reference: a larger function object would be allocated, in each step.
    loss = compute(step, rank(),
                   client_.pushes_ahead() ? math::Model::OnReady(std::ref(push_ahead))
                                          : math::Model::OnReady());
    delay(local_step);
    reply_ = client_.push_pull(sequence, parameters_.span(), cut,
                               [this, step] { load(step + 1, rank()); });
    keep_unused();
  }
  round_parameters();
  if (reply_.joined && reply_.generation != generation) {
    log_info(format("The run goes on from global step %llu, generation %u",
                    static_cast<unsigned long long>(reply_.step), reply_.generation));
  } else if (cut && !reply_.joined) {
    hooks.on_cut(sequence, reply_);
  }
  log_step(local_step + 1, loss);
}

// --compress: what the push did not bring to the parameters is not to be lost.
void Trainer::keep_unused() {
  if (!top_k_) {
    return;
  }
  if (reply_.joined) {
    top_k_->reset();  // what it is the rest of may have been taken back with the ps's state
    return;
  }
  if (reply_.dropped == 0) {
    return;
  }
  for (const math::Range range : client_.dropped_ranges()) {
    top_k_->take_back(range.begin, client_.gradient().subspan(range.begin, range.size()));
  }
}

float Trainer::take_elastic_step(std::uint64_t sequence, bool cut) {
  std::vector<bool> pushed(config_.micro_batches, false);
  std::vector<std::uint64_t> missing;
  const std::uint64_t stride = reply_.share >> 32U;
  for (std::uint64_t slot = reply_.share & 0xFFFFFFFFU; stride != 0 && slot < pushed.size();
       slot += stride) {
    missing.push_back(slot);
  }
  float loss = 0;
  do {
    for (const std::uint64_t slot : missing) {
      if (slot < pushed.size() && !pushed[slot]) {
        pushed[slot] = true;
        loss = compute(reply_.step, slot);
        client_.push(slot);
      }
    }
  } while (!client_.await_step(sequence, next_parameters_.span(), cut, reply_, missing));
  std::swap(parameters_, next_parameters_);
  reply_.parameters = parameters_.span();
  return loss;
}

void Trainer::log_step(std::uint64_t local_step, float loss) {
  if (options_.log_every != 0 && local_step % options_.log_every == 0) {
    const net::TaskId& self = options_.task.self;
    const std::string name =
        self.job == net::Job::kChief ? "Chief" : "Worker " + std::to_string(self.index);
    log_info(format("%s: training step %llu done (global step: %llu, loss: %.4f)", name.c_str(),
                    static_cast<unsigned long long>(local_step),
                    static_cast<unsigned long long>(reply_.step), static_cast<double>(loss)));
  }
  progress_.write({.step = reply_.step,
                   .train_steps = config_.train_steps,
                   .loss = static_cast<double>(loss),
                   .images = reply_.step * config_.rows_per_step()});
}

Trainer::Result Trainer::evaluate() {
  loaded_.reset();
  return {.validation = model_->evaluate(reply_.parameters, image_set(dataset_.validation)),
          .test = model_->evaluate(reply_.parameters, image_set(dataset_.test))};
}

void Trainer::print_evaluation(std::uint64_t step) {
  const Result result = evaluate();
  print_result(
      format("After %llu training step(s), validation cross entropy = %.6g, "
             "test accuracy = %.4f",
             static_cast<unsigned long long>(step), result.validation.cross_entropy,
             result.test.accuracy()));
}

std::optional<Failure> Trainer::print_result_lines() {
  const Result result = evaluate();
  const auto step = static_cast<unsigned long long>(reply_.step);
  const auto rate = static_cast<double>(config_.optimizer.learning_rate);
  const Learning learning = judge(result.validation, config_.model.classes);
  if (learning != Learning::kLearned) {
    const std::string what = format(
        "the validation cross entropy is %.6g after step %llu, that of guessing %.4g",
        result.validation.cross_entropy, step, cross_entropy_of_guessing(config_.model.classes));
    if (learning == Learning::kDiverged) {
      return Failure(kError, what + ": " + diverged(rate));
    }
    log_warning(what + ": the model has learnt next to nothing");
  }
  print_result(format("After %llu training step(s), validation cross entropy = %.6g", step,
                      result.validation.cross_entropy));
  if (options_.print_weights_hash) {
    print_result("Weights SHA-256: " + weights_hash(model_->layout(), reply_.parameters));
  }
  print_result(dataset_.name + format(" accuracy: %.4f", result.test.accuracy()));
  return std::nullopt;
}

std::string weights_hash(const math::ParameterLayout& layout, std::span<const float> parameters) {
  data::Sha256 hash;
  for (const math::Variable& variable : layout.variables()) {
    hash.update(std::as_bytes(parameters.subspan(variable.offset, variable.size)));
  }
  return hash.hex();
}

}  // namespace disttf::roles
