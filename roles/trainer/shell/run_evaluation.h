// How a model does on the validation and the test set of a run, and what is printed of that: the
// same by a trainer and by an evaluator.
//
// Not thread-safe where it takes a model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/dataset.h"
#include "math/evaluation.h"
#include "math/model.h"
#include "roles/run/outcome.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

struct SetEvaluations {
  math::Evaluation validation;
  math::Evaluation test;
  double weights = 0;  // the root mean square of the trained parameters
};
// REQUIRES: as Model::evaluate().
[[nodiscard]] SetEvaluations evaluate_sets(math::Model& model, std::span<const float> parameters,
                                           const data::Dataset& dataset, std::uint64_t test_shifts);

// "After 500 training step(s), validation cross entropy = 0.0648704, test accuracy = 0.9771".
[[nodiscard]] std::string evaluation_line(std::uint64_t step, const SetEvaluations& found);

// "training has diverged; ..."
[[nodiscard]] std::string diverged_text(const RunConfig& config);
// Why that is no result, if it is none: training has diverged. Of one that is hardly better than
// guessing a warning is in the log.
[[nodiscard]] std::optional<Failure> why_no_result(const RunConfig& config, std::uint64_t step,
                                                   const SetEvaluations& found);

struct ResultExtras {
  bool classes = false;        // the table of them
  std::string weights_sha256;  // empty: not printed
};
// The result lines, "MNIST accuracy: 0.9771" last.
void print_run_result(std::uint64_t step, const SetEvaluations& found, const data::Dataset& dataset,
                      const ResultExtras& extras);

}  // namespace disttf::roles
