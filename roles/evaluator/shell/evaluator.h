// The evaluator: a task beside a run that says how good its model is, and that the run neither
// waits for nor knows of. It looks at one state after the other, each of one step: the checkpoints
// in
// --train_dir, or without one what the ps hold. States that come while it computes are left out,
// but for the last one, which it always scores; then it ends by itself.
#pragma once

#include <chrono>
#include <optional>

#include "roles/evaluator/core/best_metric.h"
#include "roles/trainer/shell/trainer.h"

namespace disttf::roles {

struct EvaluatorOptions {
  TrainerOptions trainer;                    // without a cluster: from --train_dir alone
  std::chrono::seconds every{10};            // between the beginnings of two evaluations, at least
  std::optional<BestMetric> keep_best = {};  // nullopt: none is marked
};

// Throws Failure: kLostPeers where the run is not there (any more).
int run_evaluator(const EvaluatorOptions& options);

}  // namespace disttf::roles
