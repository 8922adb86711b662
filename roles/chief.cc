#include "roles/chief.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "roles/checkpoint/checkpointer.h"
#include "roles/finish.h"
#include "roles/log.h"
#include "roles/outcome.h"
#include "roles/overseer.h"

namespace disttf::roles {
namespace {

// For the ps to settle at one step, and to be copied and written: at the end of a run, and before
// this task leaves it because of a signal (orchestrators grant 10 s or more).
constexpr std::chrono::seconds kLastSave{60};
constexpr std::chrono::seconds kSaveOnSignal{4};

// For ps that were started again just then, to be told that the run is over.
constexpr std::chrono::seconds kOverseersFarewell{3};

// A ps that is not there yet is waited for by whoever connects to it.
constexpr std::chrono::milliseconds kFirstViews{500};

// What the run goes on from when the ps do not hold one state.
TrainingState state_to_train(Trainer& trainer, Checkpointer& checkpointer) {
  if (trainer.reply().finished) {  // a ps was lost after the last step
    TrainingState state{.step = trainer.reply().step};
    state.parameters = math::AlignedVector(trainer.parameters().size());
    std::ranges::copy(trainer.parameters(), state.parameters.data());
    return state;
  }
  if (std::optional<TrainingState> newest = checkpointer.newest()) {
    return std::move(*newest);
  }
  TrainingState initial;
  initial.parameters = math::AlignedVector(trainer.model().layout().size());
  trainer.model().initialize(trainer.config().seed, initial.parameters.span());
  log_info("Variables initialized: " + std::to_string(trainer.model().layout().parameter_count()) +
           " parameters on " + std::to_string(trainer.client().ps_count()) + " ps");
  return initial;
}

// What the looser modes cost: late gradients dropped, staleness.
void log_summary(const RunConfig& config, const std::string& status) {
  const auto counters = nlohmann::json::parse(status, nullptr, /*allow_exceptions=*/false);
  if (!counters.is_object() || config.every_gradient_counts()) {
    return;
  }
  const double applied = counters.value("applied", 0.0);
  if (config.sync_replicas) {
    log_info("Gradients on ps 0: " + std::to_string(counters.value("applied", 0ULL)) +
             " applied, " + std::to_string(counters.value("dropped", 0ULL)) +
             " came late and were dropped");
  } else if (applied > 0) {
    std::array<char, 80> line{};
    std::snprintf(line.data(), line.size(), "Staleness on ps 0: mean %.2f, max %.0f steps",
                  counters.value("staleness_sum", 0.0) / applied,
                  counters.value("staleness_max", 0.0));
    log_info(line.data());
  }
}

}  // namespace

void lead(const TrainerOptions& options, const StopSignal& stop) {
  Trainer trainer(options, stop);
  PsClient& client = trainer.client();
  RunConfig config = options.config;
  config.dataset = trainer.dataset().name;
  config.data_checksum = trainer.dataset().checksum;
  config.trainers = options.task.cluster.trainer_count();
  trainer.prepare(config);
  std::optional<Overseer> overseer;
  if (config.ps_replicas > 1) {
    overseer.emplace(options.task);
    overseer->await_views(kFirstViews);
  }
  if (client.connect()) {
    log_info("the run has finished already");
    return;
  }
  if (config.top_k != 0) {
    log_warning(
        "--compress: a trainer that dies takes along what it has not pushed yet of its "
        "gradients, and the weights are then not those of an undisturbed run");
  }
  Checkpointer checkpointer(options.task, options.checkpoint, config, trainer.model().layout());
  client.lead(to_json(config), [&] { return state_to_train(trainer, checkpointer); });
  std::uint64_t next_evaluation = config.eval_every;
  const StepHooks hooks{
      .wants_cut = [&](std::uint64_t step) { return checkpointer.wants_cut(step); },
      .on_cut = [&](std::uint64_t sequence,
                    const StepReply& reply) { checkpointer.collect(sequence, reply.generation); },
      .after_step =
          [&](std::uint64_t step) {
            if (config.eval_every != 0 && step >= next_evaluation && step < config.train_steps) {
              trainer.print_evaluation(step);
              next_evaluation = (step / config.eval_every + 1) * config.eval_every;
            }
          }};
  const bool saves = !options.checkpoint.train_dir.empty();
  try {
    trainer.train(hooks);
  } catch (const Failure& failure) {
    const int code = failure.exit_code();
    if (saves && (code == kInterrupted || code == kTerminated || code == kLostPeers)) {
      checkpointer.save_now(trainer.reply().generation, kSaveOnSignal);
    }
    throw;
  }
  if (saves) {
    checkpointer.save_now(trainer.reply().generation, kLastSave);
  }
  const std::string status = client.status(0);
  if (!config.every_gradient_counts()) {
    static_cast<void>(client.peek(trainer.own_parameters()));  // what the others' last pushes made
  }
  trainer.print_result_lines();
  log_summary(config, status);
  client.shutdown(trainer.own_parameters());
  if (overseer) {
    overseer->finish(kOverseersFarewell);
  }
}

int run_chief(const TrainerOptions& options) {
  const StopSignal stop;
  lead(options, stop);
  return finish(options.task.on_finish, stop);
}

}  // namespace disttf::roles
