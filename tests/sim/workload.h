// What the simulated trainers compute, and what must come of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "roles/run/run_config.h"

namespace disttf::sim {

using Values = std::vector<float>;

// Any state but 0.
void initialize(std::span<float> parameters) noexcept;
// A gradient that depends on every bit of the parameters, so that a difference spreads. [size of
// parameters]; the same for whoever computes it.
void compute_gradient(std::span<const float> parameters, std::uint64_t step, std::size_t slot,
                      std::span<float> gradient) noexcept;

// The parameters after each step of a run in which every gradient counts: a sequential reference,
// with arithmetic of its own.
class Oracle {
 public:
  // REQUIRES: config.every_gradient_counts().
  Oracle(const roles::RunConfig& config, std::size_t size);
  // REQUIRES: step <= train_steps.
  [[nodiscard]] std::span<const float> parameters_at(std::uint64_t step);
  // What the run ends with: its last parameters, or the average of all.
  [[nodiscard]] std::span<const float> result();

 private:
  void advance();

  const roles::RunConfig config_;
  const math::ParameterLayout layout_;
  std::vector<Values> states_;  // by step
  Values first_;                // the optimizer's
  Values second_;
  Values average_;  // up to the newest of states_
  Values sum_;
  Values gradient_;
};

}  // namespace disttf::sim
