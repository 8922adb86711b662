#include "roles/chief.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "roles/log.h"
#include "roles/outcome.h"

namespace disttf::roles {
namespace {

// Gives the ps the configuration and the initial parameters.
void start_run(Trainer& trainer) {
  PsClient& client = trainer.client();
  client.publish(to_json(trainer.config()));
  math::AlignedVector initial(trainer.model().layout().size());
  trainer.model().initialize(trainer.config().seed, initial.span());
  client.restore(initial.span(), 0);
  log_info("Variables initialized: " + std::to_string(trainer.model().layout().parameter_count()) +
           " parameters on " + std::to_string(client.ps_count()) + " ps");
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

int run_chief(const TrainerOptions& options) {
  const StopSignal stop;
  Trainer trainer(options, stop);
  PsClient& client = trainer.client();
  RunConfig config = options.config;
  config.dataset = trainer.dataset().name;
  config.data_checksum = trainer.dataset().checksum;
  config.trainers = options.task.cluster.trainer_count();
  trainer.prepare(config);
  switch (client.connect()) {
    case net::ShardState::kEmpty:
      start_run(trainer);
      break;
    case net::ShardState::kReady:
      // A chief that was restarted: the ps hold a run. Publishing again checks that it is this one.
      client.publish(to_json(config));
      log_info("the ps hold a run that is under way; joining it");
      break;
    case net::ShardState::kFinished:
      log_info("the run has finished already");
      return kDone;
  }
  std::uint64_t next_evaluation = config.eval_every;
  trainer.train([&](std::uint64_t step) {
    if (config.eval_every != 0 && step >= next_evaluation && step < config.train_steps) {
      trainer.print_evaluation(step);
      next_evaluation = (step / config.eval_every + 1) * config.eval_every;
    }
  });
  const std::string status = client.status(0);
  if (!config.every_gradient_counts()) {
    static_cast<void>(client.pull(trainer.parameters()));  // what the others' last pushes made
  }
  trainer.print_result_lines();
  log_summary(config, status);
  client.shutdown();
  return kDone;
}

}  // namespace disttf::roles
