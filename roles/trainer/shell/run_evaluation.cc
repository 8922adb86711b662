#include "roles/trainer/shell/run_evaluation.h"

#include <fmt/format.h>

#include "roles/trainer/core/divergence.h"
#include "roles/trainer/shell/run_data.h"
#include "run/process/log.h"
#include "run/result_text.h"

namespace disttf::roles {

SetEvaluations evaluate_sets(math::Model& model, std::span<const float> parameters,
                             const data::Dataset& dataset, std::uint64_t test_shifts) {
  const auto of = [&](const data::Split& split) {
    return model.evaluate(parameters, image_set(dataset, split), test_shifts);
  };
  return {.validation = of(dataset.validation),
          .test = of(dataset.test),
          .weights = root_mean_square(model.layout(), parameters)};
}

std::string evaluation_line(std::uint64_t step, const SetEvaluations& found) {
  if (const math::Evaluation& told = found.validation; told.is_told) {
    const std::string text = told_text(told);
    return fmt::format("After {} training step(s){}{}", step, text.empty() ? "" : ", ", text);
  }
  return fmt::format("After {} training step(s), {}, {}", step, validation_text(found.validation),
                     test_text(found.test));
}

std::string diverged_text(const RunConfig& config) {
  return fmt::format("training has diverged; a lower --learning_rate than {:g} may help",
                     static_cast<double>(config.optimizer.learning_rate));
}

std::optional<Failure> why_no_result(const RunConfig& config, std::uint64_t step,
                                     const SetEvaluations& found) {
  // The loss of guessing gives the scale by which a loss counts as high.
  const double guessing = math::loss_type(config.model.loss).of_guessing(config.model.classes);
  // The validation set decides: the test set must not influence the run.
  const Learning learning = judge(found.validation, guessing, found.weights);
  if (learning == Learning::kLearned) {
    return std::nullopt;
  }
  const std::string what =
      fmt::format("the validation {} is {:.6g} after step {}, that of guessing {:.4g}",
                  loss_word(found.validation), found.validation.loss, step, guessing);
  if (learning == Learning::kDiverged) {
    return Failure(kError, fmt::format("{}, and the root mean square of the weights is {:.3g}: {}",
                                       what, found.weights, diverged_text(config)));
  }
  log_warning(what + ": the model has learnt next to nothing");
  return std::nullopt;
}

void print_weights_hash(const std::string& sha256) {
  if (!sha256.empty()) {
    print_result("Weights SHA-256: " + sha256);
  }
}

void print_run_result(std::uint64_t step, const SetEvaluations& found, std::string_view name,
                      std::span<const std::string_view> classes, const ResultExtras& extras) {
  print_result(found.validation.is_told ? evaluation_line(step, found)
                                        : fmt::format("After {} training step(s), {}", step,
                                                      validation_text(found.validation)));
  if (extras.classes && found.test.classes != 0) {
    for (const std::string& line : class_table(found.test, classes)) {
      print_result(line);
    }
  }
  print_weights_hash(extras.weights_sha256);
  print_result(result_line(name, found.test));
}

}  // namespace disttf::roles
