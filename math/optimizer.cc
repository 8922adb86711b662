#include "math/optimizer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

struct NamedOptimizer {
  OptimizerKind kind;
  std::string_view name;
};
constexpr std::array<NamedOptimizer, 4> kOptimizerNames = {{{OptimizerKind::kSgd, "sgd"},
                                                            {OptimizerKind::kMomentum, "momentum"},
                                                            {OptimizerKind::kAdagrad, "adagrad"},
                                                            {OptimizerKind::kAdam, "adam"}}};

// TensorFlow's initial_accumulator_value: the first step divides by its root, not by zero.
constexpr float kAdagradStart = 0.1F;

// What one thread computes of an update at a time, and from how many parts on several do: a thread
// takes longer to wake up than to compute a few.
constexpr std::size_t kPartFloats = 16 * 1024;
constexpr std::size_t kLeastParts = 8;

std::size_t members(std::size_t size, std::size_t threads) {
  return size < kLeastParts * kPartFloats ? 1 : threads;
}

// base^exponent by squaring: the C library's pow picks its code by CPU, and its last bit with it.
double power(double base, std::uint64_t exponent) noexcept {
  double result = 1.0;
  for (; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) {
      result *= base;
    }
    base *= base;
  }
  return result;
}

void require(bool allowed, std::string_view field, float value, std::string_view rule) {
  if (allowed) {
    return;
  }
  std::ostringstream sentence;
  sentence << field << ": " << value << " is not allowed, it must be " << rule;
  throw std::invalid_argument(sentence.str());
}

bool is_positive(float value) noexcept {
  return value > 0.0F && value <= std::numeric_limits<float>::max();
}
bool is_fraction(float value) noexcept { return value >= 0.0F && value < 1.0F; }

}  // namespace

std::string_view optimizer_name(OptimizerKind kind) noexcept {
  for (const NamedOptimizer& entry : kOptimizerNames) {
    if (entry.kind == kind) {
      return entry.name;
    }
  }
  return "unknown";
}

std::optional<OptimizerKind> optimizer_from_name(std::string_view name) noexcept {
  for (const NamedOptimizer& entry : kOptimizerNames) {
    if (entry.name == name) {
      return entry.kind;
    }
  }
  return std::nullopt;
}

void validate(const OptimizerSpec& spec) {
  constexpr std::string_view kPositive = "a finite number above 0";
  constexpr std::string_view kFraction = "at least 0 and below 1";
  require(is_positive(spec.learning_rate), "learning_rate", spec.learning_rate, kPositive);
  require(is_fraction(spec.momentum), "momentum", spec.momentum, kFraction);
  require(is_fraction(spec.beta1), "beta1", spec.beta1, kFraction);
  require(is_fraction(spec.beta2), "beta2", spec.beta2, kFraction);
  require(is_positive(spec.epsilon), "epsilon", spec.epsilon, kPositive);
}

// Of an update: what its parts are computed from.
struct Optimizer::Update {
  const float* parameters;
  float* updated;
  GradientSum gradient;
  float scale;
  float rate;  // adam: with both bias corrections in it
};

Optimizer::Optimizer(OptimizerSpec spec, std::size_t size, Isa isa, std::size_t threads)
    : spec_(spec),
      kernels_(&kernels(isa)),
      size_(size),
      team_(std::make_unique<Team>(members(size, threads), Team::kSleep)) {
  validate(spec_);
  if (spec_.kind != OptimizerKind::kSgd) {
    first_ = AlignedVector(size);
  }
  if (spec_.kind == OptimizerKind::kAdam) {
    second_ = AlignedVector(size);
  }
  reset();
}

void Optimizer::reset() {
  std::ranges::fill(first_.span(), spec_.kind == OptimizerKind::kAdagrad ? kAdagradStart : 0.0F);
  std::ranges::fill(second_.span(), 0.0F);
}

void Optimizer::apply(std::span<const float> parameters, std::span<float> updated,
                      std::span<const float> gradient_sum, float scale, std::uint64_t step,
                      float rate_factor, std::span<const float> last) {
  assert(parameters.size() == size_);
  assert(updated.size() == size_);
  assert(gradient_sum.size() == size_);
  assert(step > 0);
  assert(last.empty() || last.size() == size_);
  Update update{
      .parameters = parameters.data(),
      .updated = updated.data(),
      .gradient = {.sum = gradient_sum.data(), .last = last.empty() ? nullptr : last.data()},
      .scale = scale,
      .rate = spec_.learning_rate * rate_factor};
  if (spec_.kind == OptimizerKind::kAdam) {
    const double unbias1 = 1.0 - power(double{spec_.beta1}, step);
    const double unbias2 = 1.0 - power(double{spec_.beta2}, step);
    // std::sqrt is exact by the standard of the arithmetic, unlike std::pow.
    update.rate = static_cast<float>(double{update.rate} * std::sqrt(unbias2) / unbias1);
  }
  // More parts than members: whoever wakes up late has fewer.
  const EvenParts parts(size_, kPartFloats, team_->size() == 1 ? 1 : size_ / kPartFloats);
  team_->run(parts.count(), [&](std::size_t number, std::size_t) {
    apply_part(update, parts.begin(number), parts.end(number));
  });
}

void Optimizer::apply_part(const Update& update, std::size_t begin, std::size_t end) noexcept {
  const float* w = update.parameters + begin;
  float* next = update.updated + begin;
  float* first = first_.data() + (spec_.kind == OptimizerKind::kSgd ? 0 : begin);
  const GradientSum g{
      .sum = update.gradient.sum + begin,
      .last = update.gradient.last == nullptr ? nullptr : update.gradient.last + begin};
  const std::size_t count = end - begin;
  switch (spec_.kind) {
    case OptimizerKind::kSgd:
      return kernels_->sgd(w, next, g, count, update.scale, update.rate);
    case OptimizerKind::kMomentum:
      return kernels_->momentum(w, next, first, g, count, update.scale, update.rate,
                                spec_.momentum);
    case OptimizerKind::kAdagrad:
      return kernels_->adagrad(w, next, first, g, count, update.scale, update.rate);
    case OptimizerKind::kAdam:
      return kernels_->adam(w, next, first, second_.data() + begin, g, count,
                            {.scale = update.scale,
                             .rate = update.rate,
                             .beta1 = spec_.beta1,
                             .beta2 = spec_.beta2,
                             .epsilon = spec_.epsilon});
  }
}

std::vector<StateTensor> Optimizer::state() {
  switch (spec_.kind) {
    case OptimizerKind::kSgd:
      return {};
    case OptimizerKind::kMomentum:
      return {{"momentum", first_.span()}};
    case OptimizerKind::kAdagrad:
      return {{"accumulator", first_.span()}};
    case OptimizerKind::kAdam:
      return {{"m", first_.span()}, {"v", second_.span()}};
  }
  return {};
}

void add(std::span<float> to, std::span<const float> a, std::span<const float> b, Isa isa) {
  assert(to.size() == a.size() && to.size() == b.size());
  kernels(isa).add(to.data(), a.data(), b.data(), to.size());
}

}  // namespace disttf::math
