#include "tests/sim/workload.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/sim/network.h"

namespace disttf::sim {

void initialize(std::span<float> parameters) noexcept {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] = static_cast<float>(static_cast<int>(i % 17) - 8) / 16.0F;
  }
}

void compute_gradient(std::span<const float> parameters, std::uint64_t step, std::size_t slot,
                      std::span<float> gradient, std::uint64_t seed) noexcept {
  std::uint64_t bits = sum_of(std::as_bytes(parameters)) + step * 0x9E3779B97F4A7C15U +
                       (seed - 1) * 0x94D049BB133111EBU;
  bits = (bits ^ (slot + 1)) * 0xBF58476D1CE4E5B9U;
  const auto begin = static_cast<std::uint32_t>(bits >> 32U);
  for (std::uint32_t i = 0; i < gradient.size(); ++i) {
    std::uint32_t value = begin + i * 0x9E3779B9U;
    value = (value ^ (value >> 15U)) * 0x85EBCA6BU;
    // Values with many digits: sums are rounded, so the order of additions matters.
    gradient[i] = static_cast<float>(static_cast<std::int32_t>(value)) * 0x1p-33F;
  }
}

math::Evaluation evaluate(std::span<const float> parameters) noexcept {
  const std::uint64_t bits = sum_of(std::as_bytes(parameters)) * 0x9E3779B97F4A7C15U;
  return {.loss = static_cast<double>(bits >> 40U) * 0x1p-24,
          .correct = static_cast<std::size_t>((bits & 0xFFFFFFU) % 1000),
          .rows = 1000,
          .classes = 10};
}

Oracle::Oracle(const roles::RunConfig& config, std::size_t size)
    : config_(config),
      layout_(math::layout_of(config.model)),
      first_(size),
      second_(size),
      sum_(size) {
  states_.emplace_back(size);
  initialize(states_.back());
  average_ = states_.back();
  if (config_.optimizer.kind == math::OptimizerKind::kAdagrad) {
    std::ranges::fill(first_, 0.1F);
  }
}

std::span<const float> Oracle::parameters_at(std::uint64_t step) {
  while (states_.size() <= step) {
    advance();
  }
  return states_[step];
}

std::uint64_t Oracle::last_step() {
  while (!last_step_) {
    const std::uint64_t step = states_.size() - 1;
    if (step == config_.train_steps || ends_at_newest()) {
      last_step_ = step;
    } else {
      advance();
    }
  }
  return *last_step_;
}

// Follows the documentation of the flags: stops when the target is reached, or when the newest
// `patience` evaluations are all no better than the best before them.
bool Oracle::ends_at_newest() {
  const std::uint64_t step = states_.size() - 1;
  if (!config_.stops_early() || step == 0 || step % config_.eval_every != 0) {
    return false;
  }
  const math::Evaluation found = evaluate(states_.back());
  losses_.push_back(found.loss);
  const auto best = std::ranges::min_element(losses_);
  const auto since = static_cast<std::uint64_t>(losses_.end() - best) - 1;
  return (config_.target_accuracy != 0 && found.accuracy() > double{config_.target_accuracy}) ||
         (config_.patience != 0 && since >= config_.patience);
}

std::span<const float> Oracle::result() {
  const std::span<const float> last = parameters_at(last_step());
  return config_.optimizer.average_decay == 0 ? last : average_;
}

// Adds as a binary counter counts: the sums on the stack have sizes that are the digits of the
// number of gradients, with the largest at the bottom.
void Oracle::add_up(const Values& old, std::uint64_t step) {
  std::vector<std::pair<std::size_t, Values>> stack;  // how many gradients, and their sum
  const auto join = [&stack] {
    const auto [count, values] = std::move(stack.back());
    stack.pop_back();
    stack.back().first += count;
    for (std::size_t i = 0; i < values.size(); ++i) {
      stack.back().second[i] += values[i];
    }
  };
  for (std::size_t slot = 0; slot < config_.slots(); ++slot) {
    stack.emplace_back(1, Values(old.size()));
    compute_gradient(old, step, slot, stack.back().second, config_.seed);
    while (stack.size() > 1 && stack[stack.size() - 2].first == stack.back().first) {
      join();
    }
  }
  while (stack.size() > 1) {
    join();
  }
  sum_ = std::move(stack.back().second);
}

void Oracle::advance() {
  const std::uint64_t step = states_.size() - 1;
  const Values& old = states_.back();
  add_up(old, step);
  const math::OptimizerSpec& spec = config_.optimizer;
  const float share = 1.0F / static_cast<float>(config_.slots());
  float rate = spec.learning_rate;
  if (config_.rate_decay == math::RateDecay::kLinear) {
    rate *= 1.0F - static_cast<float>(step) / static_cast<float>(config_.train_steps);
  }
  if (spec.kind == math::OptimizerKind::kAdam || spec.kind == math::OptimizerKind::kAdamw) {
    double power1 = 1;
    double power2 = 1;
    double base1 = double{spec.beta1};
    double base2 = double{spec.beta2};
    // By squaring, as the product does: rounding differs otherwise.
    for (std::uint64_t rest = step + 1; rest != 0; rest /= 2) {
      power1 = rest % 2 == 1 ? power1 * base1 : power1;
      power2 = rest % 2 == 1 ? power2 * base2 : power2;
      base1 *= base1;
      base2 *= base2;
    }
    rate = static_cast<float>(double{rate} * std::sqrt(1.0 - power2) / (1.0 - power1));
  }
  Values next(old.size());
  for (std::size_t i = 0; i < old.size(); ++i) {
    const float g = sum_[i] * share;
    switch (spec.kind) {
      case math::OptimizerKind::kSgd:
        next[i] = old[i] - rate * g;
        break;
      case math::OptimizerKind::kMomentum:
        first_[i] = spec.momentum * first_[i] + g;
        next[i] = old[i] - rate * first_[i];
        break;
      case math::OptimizerKind::kAdagrad:
        first_[i] += g * g;
        next[i] = old[i] - rate * g / std::sqrt(first_[i]);
        break;
      case math::OptimizerKind::kAdam:
      case math::OptimizerKind::kAdamw:  // equals Adam: weight decay is never drawn
        first_[i] = spec.beta1 * first_[i] + (1.0F - spec.beta1) * g;
        second_[i] = spec.beta2 * second_[i] + (1.0F - spec.beta2) * (g * g);
        next[i] = old[i] - rate * first_[i] / (std::sqrt(second_[i]) + spec.epsilon);
        break;
    }
  }
  for (const math::Variable& variable : layout_.variables()) {
    for (std::size_t i = variable.offset; variable.momentum && i < variable.offset + variable.size;
         ++i) {
      next[i] = *variable.momentum * old[i] + (1.0F - *variable.momentum) * (sum_[i] * share);
    }
  }
  const auto count = static_cast<double>(step + 1);
  const double kept = std::min(double{spec.average_decay}, (1.0 + count) / (10.0 + count));
  const auto taken = static_cast<float>(1.0 - kept);
  for (std::size_t i = 0; i < next.size(); ++i) {
    average_[i] -= taken * (average_[i] - next[i]);
  }
  states_.push_back(std::move(next));
}

}  // namespace disttf::sim
