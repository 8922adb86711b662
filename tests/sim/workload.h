// What the simulated trainers compute, and the expected results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "math/evaluation.h"
#include "run/run_config.h"

namespace disttf::sim {

using Values = std::vector<float>;

// Sets any values but 0.
void initialize(std::span<float> parameters) noexcept;
// Computes a gradient that depends on every bit of the parameters, so that any difference spreads.
// [size of parameters]; all trainers compute the same. `seed`: of the configuration.
void compute_gradient(std::span<const float> parameters, std::uint64_t step, std::size_t slot,
                      std::span<float> gradient, std::uint64_t seed = 1) noexcept;

// Returns a loss and an accuracy, which depend on every bit of the parameters, too.
[[nodiscard]] math::Evaluation evaluate(std::span<const float> parameters) noexcept;

// The parameters after each step of a run in which every gradient counts: a sequential reference
// implementation with arithmetic of its own.
class Oracle {
 public:
  // REQUIRES: config.every_gradient_counts().
  Oracle(const roles::RunConfig& config, std::size_t size);
  // Returns the last step: train_steps, or where early stopping ends the run.
  [[nodiscard]] std::uint64_t last_step();
  // REQUIRES: step <= last_step().
  [[nodiscard]] std::span<const float> parameters_at(std::uint64_t step);
  // Returns the run's result: its last parameters, or the average of all.
  [[nodiscard]] std::span<const float> result();

 private:
  void advance();
  void add_up(const Values& parameters, std::uint64_t step);
  [[nodiscard]] bool ends_at_newest();

  const roles::RunConfig config_;
  const math::ParameterLayout layout_;
  std::vector<Values> states_;  // by step
  std::optional<std::uint64_t> last_step_;
  std::vector<double> losses_;  // of the evaluations
  Values first_;                // the optimizer's tensors
  Values second_;
  Values average_;  // up to the newest of states_
  Values sum_;      // of the step's gradients
};

}  // namespace disttf::sim
