// Evaluates a model on the validation and the test set of a run, and prints the result; used by
// trainers and by evaluators.
//
// Functions that take a model are not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "math/evaluation.h"
#include "math/model.h"
#include "run/outcome.h"
#include "run/run_config.h"

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
// Returns why there is no result, if training has diverged. For a model that is hardly better than
// guessing it logs a warning.
[[nodiscard]] std::optional<Failure> why_no_result(const RunConfig& config, std::uint64_t step,
                                                   const SetEvaluations& found);

struct ResultExtras {
  bool classes = false;        // print the table of classes
  std::string weights_sha256;  // empty: not printed
};
// Prints the result lines, "MNIST accuracy: 0.9771" last. `name`: of the data; `classes`: their
// names, if they have any.
void print_run_result(std::uint64_t step, const SetEvaluations& found, std::string_view name,
                      std::span<const std::string_view> classes, const ResultExtras& extras);
// "Weights SHA-256: ..."; nothing if it is empty.
void print_weights_hash(const std::string& sha256);

}  // namespace disttf::roles
