// What the tests of roles/ps/core/shard.h share: configurations and whole pushes.
//
// With SGD, rate 1 and zero parameters, sums are visible: after a step the parameters are minus the
// mean of its gradients.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "roles/ps/core/shard.h"

namespace disttf::roles {

using Verdict = Admission::Verdict;
using Values = std::vector<float>;

inline constexpr std::uint64_t kProcess = 7;  // an incarnation

inline RunConfig sgd_config(std::size_t trainers, std::uint64_t train_steps = 100) {
  RunConfig config;
  config.optimizer = {.kind = math::OptimizerKind::kSgd, .learning_rate = 1.0F};
  config.rate_decay = math::RateDecay::kNone;
  config.isa = math::Isa::kGeneric;
  config.trainers = trainers;
  config.train_steps = train_steps;
  return config;
}

inline RunConfig backup_config(std::size_t trainers, std::size_t wanted,
                               std::uint64_t train_steps = 100) {
  RunConfig config = sgd_config(trainers, train_steps);
  config.replicas_to_aggregate = wanted;
  return config;
}

inline RunConfig async_config(std::size_t trainers, std::optional<std::uint64_t> max_staleness = {},
                              std::uint64_t train_steps = 100) {
  RunConfig config = sgd_config(trainers, train_steps);
  config.sync_replicas = false;
  config.max_staleness = max_staleness;
  return config;
}

inline Values values_of(std::span<const float> values) { return {values.begin(), values.end()}; }

// Compares bits, so that -0 and 0 differ and a NaN equals itself.
inline std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

// Writes `gradient` to the admission's destination.
inline void fill(const Admission& admission, std::span<const float> gradient) {
  ASSERT_EQ(admission.verdict, Verdict::kReceive) << admission.why;
  ASSERT_EQ(admission.destination.size(), gradient.size());
  std::copy(gradient.begin(), gradient.end(), admission.destination.begin());
}

// A whole push: admitted, received, committed.
inline void push(Shard& shard, const PushId& id, std::span<const float> gradient) {
  fill(shard.admit(id), gradient);
  shard.commit(id);
}

inline void push(Shard& shard, std::size_t trainer, std::uint64_t step, float gradient) {
  const Values all(shard.range().size(), gradient);
  push(shard, {.trainer = trainer, .incarnation = kProcess, .step = step}, all);
}

// Restores the parameters. The optimizer's state starts again.
inline void restore(Shard& shard, const Values& parameters, std::uint64_t step) {
  const std::vector<std::span<float>> places = shard.begin_restore(/*parameters_only=*/true);
  ASSERT_EQ(places.front().size(), parameters.size());
  std::copy(parameters.begin(), parameters.end(), places.front().begin());
  shard.finish_restore(step);
}

inline PushId sync_id(std::size_t trainer, std::uint64_t step) {
  return {.trainer = trainer, .incarnation = kProcess, .step = step};
}

inline constexpr std::size_t kTwoTrainers = 2;

// A gradient of three parameters that differs by step, trainer and position.
inline Values three_values(std::size_t trainer, std::uint64_t step) {
  const auto base = static_cast<float>(trainer + 1) + 0.1F * static_cast<float>(step);
  return {base, -base / 2, base * 3};
}

}  // namespace disttf::roles
