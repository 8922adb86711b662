#include "roles/trainer/shell/program_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "math/program_layout.h"
#include "math/random.h"
#include "roles/trainer/core/divergence.h"
#include "roles/trainer/shell/trainer.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/program/gradient_bits.h"

namespace disttf::roles {
namespace {

// The name of a program's data without a word of its own.
constexpr const char* kNoWord = "program";

// Returns the number of rows, which the configuration has in the place of a checksum of the data;
// empty if the program does not give it.
std::string rows_word(const ProgramHello& hello) {
  return hello.rows == 0 ? std::string() : std::to_string(hello.rows);
}

math::Evaluation evaluation_of(const ProgramAnswer& answer) {
  math::Evaluation found;
  found.is_told = true;
  found.loss = std::nan("");
  for (const auto& [name, value] : answer.numbers) {
    if (name == "loss") {
      found.loss = value;
    } else if (name == "accuracy") {
      // NaN counts as no accuracy, as a loss that is NaN counts as no loss.
      if (!std::isnan(value)) {
        found.told_accuracy = value;
      }
    } else {
      found.told.emplace_back(name, value);
    }
  }
  return found;
}

}  // namespace

ProgramSource::ProgramSource(const TrainerOptions& options, StopSignal& stop)
    : options_(options),
      is_chief_(options.task.cluster.is_chief(options.task.self)),
      link_(options.program_fd, stop, options.program_timeout) {
  link_.await_layout();
  layout_ = layout_of_program(link_.variables());
  name_ = link_.hello().data.empty() ? kNoWord : link_.hello().data;
  const std::size_t variables = layout_.variables().size();
  const std::size_t parameters = layout_.parameter_count();
  log_info(fmt::format("The program ({}) has {} variable{} with {} parameter{}",
                       link_.hello().client.empty() ? "no name" : link_.hello().client, variables,
                       variables == 1 ? "" : "s", parameters, parameters == 1 ? "" : "s"));
}

RunConfig ProgramSource::complete(const RunConfig& given) {
  RunConfig config = given;
  config.dataset = name_;
  config.data_checksum = rows_word(link_.hello());
  config.model = {};
  config.model.variables = link_.variables();
  // Any trainer may compute any gradient of an elastic run, so all must compute bit-identical ones.
  // It is not published otherwise: a chief may then go on on another machine.
  if (config.elastic()) {
    config.model.fingerprint = link_.hello().fingerprint;
  }
  try {
    validate(config);
  } catch (const std::invalid_argument& error) {
    link_.refuse(kUsage, error.what());
    throw Failure(kUsage, error.what());
  }
  return config;
}

void ProgramSource::adopt(const RunConfig& published) {
  const auto refuse = [this](const std::string& sentence) {
    link_.refuse(kUsage, sentence);
    throw Failure(kUsage, sentence);
  };
  if (!published.model.is_program()) {
    refuse(
        "the chief trains a built-in model: start this task without --program, or the chief "
        "with it");
  }
  if (published.dataset != name_) {
    refuse("the program's data is " + name_ + ", that of the chief's program is " +
           published.dataset);
  }
  if (published.data_checksum != rows_word(link_.hello())) {
    refuse("the number of rows of the program's data is " + rows_text(link_.hello().rows) +
           ", of that of the chief's program it is " +
           (published.data_checksum.empty() ? "none" : published.data_checksum));
  }
  if (const auto why = math::layout_difference(layout_, math::layout_of(published.model))) {
    refuse("the program's variables are not those of the chief's: " + *why);
  }
  const std::string why =
      fingerprint_difference(link_.hello().fingerprint, published.model.fingerprint);
  if (published.elastic() && !why.empty()) {
    refuse("in an elastic run the gradients of all programs must be bit-identical: " + why +
           ", in the chief's program");
  }
}

void ProgramSource::prepare(const RunConfig& config) {
  config_ = config;
  sampler_.reset();
  link_.welcome(welcome_text(config, options_.task, layout_.size()), layout_.size(),
                config.batch_size,
                [this](std::uint64_t step, std::uint64_t slot, std::uint64_t count,
                       std::span<std::uint32_t> rows) { draw(step, slot, count, rows); });
  if (is_chief_ && initial_.size() == 0) {
    ask_initial();
  }
}

// The chief's program is asked whether they are needed or not: a chief that has joined a run may
// have to begin it anew when the ps are lost later, and the program's model has moved on by then.
void ProgramSource::ask_initial() {
  // What the program does not write is 0, whatever lay there before.
  std::ranges::fill(link_.gradient(), 0.0F);
  static_cast<void>(link_.ask({.kind = ProgramKind::kGiveInitial}));
  initial_ = math::AlignedVector(layout_.size());
  // Variable by variable: what lies between two stays 0, whatever the program wrote there.
  for (const math::Variable& variable : layout_.variables()) {
    const auto from = link_.gradient().subspan(variable.offset, variable.size);
    std::copy(from.begin(), from.end(), initial_.data() + variable.offset);
    if (!std::ranges::all_of(from, [](float value) { return std::isfinite(value); })) {
      throw Failure(kError, "the program's initial value of " + variable.name + " is not finite");
    }
  }
}

void ProgramSource::draw(std::uint64_t step, std::uint64_t slot, std::uint64_t count,
                         std::span<std::uint32_t> rows) {
  if (!sampler_ || sampled_rows_ != count) {
    sampler_.emplace(
        data::SamplerOptions{.seed = config_.seed,
                             .purpose = static_cast<std::uint32_t>(math::Purpose::kPermutation),
                             .rows = static_cast<std::uint32_t>(count),
                             .batch_size = config_.batch_size,
                             .trainers = config_.slots(),
                             .random_bits = &math::random_bits});
    sampled_rows_ = count;
  }
  // Both come from the program, and a product of larger ones would overflow.
  constexpr std::uint64_t kMostStep = std::uint64_t{1} << 32U;
  if (slot >= config_.slots() || step >= kMostStep) {
    throw Failure(kError, fmt::format("the program sent ASK_ROWS of step {} and slot {}, allowed "
                                      "are steps below 2^32 and slots below {}",
                                      step, slot, config_.slots()));
  }
  sampler_->batch(step, slot, rows);
}

void ProgramSource::initialize(std::span<float> parameters) {
  if (initial_.size() == 0) {  // `disttf verify`, whose only trainer need not be the chief
    ask_initial();
  }
  std::copy_n(initial_.data(), initial_.size(), parameters.data());
}

void ProgramSource::copy_to_program(std::span<const float> parameters) {
  std::copy(parameters.begin(), parameters.end(), link_.parameters().data());
}

float ProgramSource::gradient(std::span<const float> parameters, std::span<float> gradient,
                              const math::Model::OnReady& /*on_ready*/, StageClock& stages) {
  copy_to_program(parameters);
  stages.mark(Stage::kLoad);
  const ProgramAnswer& answer = compute();
  // Variable by variable: what lies between two stays 0, whatever the program wrote there.
  for (const math::Variable& variable : layout_.variables()) {
    const auto from = link_.gradient().subspan(variable.offset, variable.size);
    std::copy(from.begin(), from.end(), gradient.data() + variable.offset);
  }
  numbers_ = answer.numbers;
  const auto loss = static_cast<float>(answer.loss);
  const std::uint64_t every = options_.check_gradients;
  if (every != 0 && (batch_.step + 1) % every == 0) {
    check_again(gradient);
  }
  return loss;
}

// Asks for the gradient of the loaded batch.
const ProgramAnswer& ProgramSource::compute() {
  return link_.ask(
      {.kind = ProgramKind::kCompute,
       .step = batch_.step,
       .slot = batch_.slot,
       .seed = math::random_bits(config_.seed, static_cast<std::uint32_t>(math::Purpose::kProgram),
                                 batch_.step % math::kStreamLimit, batch_.slot)});
}

// The program has computed `gradient` for the loaded batch: it does so again.
void ProgramSource::check_again(std::span<const float> gradient) {
  static_cast<void>(compute());
  const auto difference = bit_difference(layout_, gradient, link_.gradient());
  if (!difference) {
    return;
  }
  ++differences_;
  log_warning(
      fmt::format("{} (bits differ in step {}, computed again): the program is not deterministic; "
                  "docs/own_program.md, Determinism; {} such gradient(s) so far",
                  *difference, batch_.step, differences_));
}

SetEvaluations ProgramSource::evaluate(std::uint64_t step, std::span<const float> parameters) {
  math::Evaluation found = evaluation_of({});
  if (link_.hello().evaluates) {
    copy_to_program(parameters);
    found = evaluation_of(link_.ask({.kind = ProgramKind::kEvaluate, .step = step}));
  }
  check_stops(found);
  return {.validation = found, .test = found, .weights = root_mean_square(layout_, parameters)};
}

// A run that waits for a number which never comes would only end at its last step.
void ProgramSource::check_stops(const math::Evaluation& found) const {
  const auto refuse = [](const char* flag, const char* number) {
    throw Failure(kUsage, fmt::format("{}: the program's evaluation tells no {}", flag, number));
  };
  if (config_.target_accuracy != 0 && !found.told_accuracy) {
    refuse("--target_accuracy", "accuracy");
  }
  if (config_.patience != 0 && std::isnan(found.loss)) {
    refuse("--patience", "loss");
  }
}

std::optional<Failure> ProgramSource::judge(std::uint64_t step, const SetEvaluations& found) const {
  if (!std::isfinite(found.weights)) {
    return Failure(kError, fmt::format("the weights are not finite after step {}: {}", step,
                                       diverged_text(config_)));
  }
  return std::nullopt;
}

void ProgramSource::end(std::uint64_t step, std::span<const float> parameters) {
  copy_to_program(parameters);
  link_.end(step);
}

}  // namespace disttf::roles
