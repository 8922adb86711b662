// The evaluator: a task beside a run that reports how good its model is. The run does not wait
// for it and does not depend on it. It evaluates one state after the other, each of one step: the
// checkpoints in --train_dir, or without one the state of the ps. States that arrive while it
// computes are skipped, except for the last one, which is always evaluated; then it exits.
#pragma once

#include <chrono>
#include <optional>

#include "roles/evaluator/best_checkpoint.h"
#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

struct EvaluatorOptions {
  TrainerOptions trainer;                    // without a cluster: only --train_dir
  std::chrono::seconds every{10};            // minimum time between the starts of two evaluations
  std::optional<BestMetric> keep_best = {};  // nullopt: no checkpoint is marked
};

// Throws Failure: kLostPeers if the run is not (or no longer) there.
int run_evaluator(const EvaluatorOptions& options);

}  // namespace disttf::roles
