// What the simulated trainers compute, and what must come of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "math/evaluation.h"
#include "roles/run/run_config.h"

namespace disttf::sim {

using Values = std::vector<float>;

// Any state but 0.
void initialize(std::span<float> parameters) noexcept;
// A gradient that depends on every bit of the parameters, so that a difference spreads. [size of
// parameters]; the same for whoever computes it. `seed`: of the configuration.
void compute_gradient(std::span<const float> parameters, std::uint64_t step, std::size_t slot,
                      std::span<float> gradient, std::uint64_t seed = 1) noexcept;

// What the parameters are worth, which depends on every bit of them, too: any loss, and any
// accuracy.
[[nodiscard]] math::Evaluation evaluate(std::span<const float> parameters) noexcept;

// The parameters after each step of a run in which every gradient counts: a sequential reference,
// with arithmetic of its own.
class Oracle {
 public:
  // REQUIRES: config.every_gradient_counts().
  Oracle(const roles::RunConfig& config, std::size_t size);
  // The last one: train_steps, or where the run ends early.
  [[nodiscard]] std::uint64_t last_step();
  // REQUIRES: step <= last_step().
  [[nodiscard]] std::span<const float> parameters_at(std::uint64_t step);
  // What the run ends with: its last parameters, or the average of all.
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
  Values first_;                // the optimizer's
  Values second_;
  Values average_;  // up to the newest of states_
  Values sum_;      // of the step's gradients
};

}  // namespace disttf::sim
