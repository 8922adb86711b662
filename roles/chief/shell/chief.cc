#include "roles/chief/shell/chief.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "roles/chief/shell/checkpointer.h"
#include "roles/chief/shell/failover_thread.h"
#include "roles/process/finish.h"
#include "roles/process/log.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

// For the ps to settle at one step, and to be copied and written: at the end of a run, and before
// this task leaves it because of a signal (orchestrators grant 10 s or more).
constexpr std::chrono::seconds kLastSave{60};
constexpr std::chrono::seconds kSaveOnSignal{4};
// For the result to be taken by whoever reads standard output.
constexpr std::chrono::seconds kResultIsTaken{2};
// A last save that failed because a ps was lost is tried again.
constexpr std::chrono::milliseconds kSaveAgain{20};

// For ps that were started again just then, to be told that the run is over.
constexpr std::chrono::seconds kFailoverFarewell{3};

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

// The last step has been made. Nobody leaves before the result is durable: saved, where there is a
// place for it, and printed. Until then the ps may be lost, and all are needed to make it again.
// False: it is to be made again.
bool settle(Trainer& trainer, Checkpointer& checkpointer, bool saves, const StopSignal& stop) {
  if (!trainer.await_others()) {
    return false;
  }
  const auto deadline = net::Clock::now() + kLastSave;
  while (saves && !checkpointer.save_final(trainer.client().generation(), deadline)) {
    const auto next = net::Clock::now() + kSaveAgain;
    if (next >= deadline) {
      log_warning("no checkpoint of the last step was saved: for " + seconds_text(kLastSave) +
                  " no ps, or not all of them, had a copy of it to give");
      break;
    }
    stop.interrupt().wait_until(next);
    stop.throw_if_stopped();
    if (!trainer.await_others()) {
      return false;
    }
  }
  return true;
}

// What the task is to end with if training has come to nothing: such a run is over, too.
std::optional<Failure> conclude(Trainer& trainer) {
  const std::string status = trainer.client().status(0);
  std::optional<Failure> failure = trainer.print_result_lines();
  log_summary(trainer.config(), status);
  // Who has been told that the run is over does not make the result again. A reader that pauses for
  // longer has it when he goes on, if this process lives until then.
  static_cast<void>(standard_output().drain(net::Clock::now() + kResultIsTaken));
  return failure;
}

// From the first step to the result, or what conclude() returns.
std::optional<Failure> train_as_chief(const TrainerOptions& options, Trainer& trainer,
                                      const StopSignal& stop) {
  const RunConfig& config = trainer.config();
  if (config.top_k != 0) {
    log_warning(
        "--compress: a trainer that dies takes along what it has not pushed yet of its "
        "gradients, and the weights are then not those of an undisturbed run");
  }
  Checkpointer checkpointer(options.task, options.checkpoint, config, trainer.model().layout());
  trainer.client().lead(to_json(config), [&] { return state_to_train(trainer, checkpointer); });
  std::uint64_t next_evaluation = config.eval_every;
  const StepHooks hooks{
      .wants_cut = [&](std::uint64_t step) { return checkpointer.wants_snapshot(step); },
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
    do {
      trainer.train(hooks);
    } while (!settle(trainer, checkpointer, saves, stop));
  } catch (const Failure& failure) {
    const int code = failure.exit_code();
    if (saves && (code == kInterrupted || code == kTerminated || code == kLostPeers)) {
      checkpointer.save_now(std::max(trainer.reply().generation, trainer.client().generation()),
                            kSaveOnSignal);
    }
    throw;
  }
  return conclude(trainer);
}

}  // namespace

void lead(const TrainerOptions& options, StopSignal& stop) {
  Trainer trainer(options, stop);
  PsClient& client = trainer.client();
  RunConfig config = options.config;
  config.dataset = trainer.dataset().name;
  config.data_checksum = trainer.dataset().checksum;
  config.trainers = options.task.cluster.trainer_count();
  trainer.prepare(config);
  std::optional<FailoverThread> failover;
  if (config.ps_replicas > 1) {
    failover.emplace(options.task, stop);
    failover->await_views(kFirstViews);
  }
  std::optional<Failure> failure;
  try {
    if (client.connect()) {
      throw RunOver();
    }
    failure = train_as_chief(options, trainer, stop);
  } catch (const RunOver&) {
    // The chief before this one may have died before it had told everybody.
    log_info("the run has finished already");
  }
  client.shutdown();
  if (failover) {
    failover->finish(kFailoverFarewell);
  }
  if (failure) {  // all steps have been made: the ps have done their part, and are let go first
    throw Failure(*failure);
  }
}

int run_chief(const TrainerOptions& options) {
  StopSignal stop;
  lead(options, stop);
  return finish(options.task.on_finish, stop);
}

}  // namespace disttf::roles
