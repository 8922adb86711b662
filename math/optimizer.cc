#include "math/optimizer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>

#include "math/kernels_table.h"
#include "math/names.h"
#include "math/non_temporal_stores.h"

namespace disttf::math {
namespace {

// A row of the rule table: the properties of a rule that are needed outside its loops.
struct RuleRow {
  float learning_rate;
  std::span<const StateStart> state;
  float (*rate_at)(const OptimizerSpec&, float rate, std::uint64_t step) noexcept;  // null: rate
  bool decouples_decay;
};

template <typename Rule>
constexpr RuleRow row_of() noexcept {
  RuleRow row{.learning_rate = Rule::kLearningRate,
              .state = {},
              .rate_at = nullptr,
              .decouples_decay = decouples_decay<Rule>()};
  if constexpr (Rule::kStateCount > 0) {
    static_assert(std::size(Rule::kState) == Rule::kStateCount);
    row.state = Rule::kState;
  }
  if constexpr (requires { &Rule::rate_at; }) {
    row.rate_at = &Rule::rate_at;
  }
  return row;
}

template <typename... Rules>
constexpr auto rows_of(RuleList<Rules...> /*rules*/) noexcept {
  return std::array{row_of<Rules>()...};
}
template <typename... Rules>
constexpr auto names_of(RuleList<Rules...> /*rules*/) noexcept {
  return std::array{Rules::kName...};
}

constexpr auto kRules = rows_of(OptimizerRules{});
constexpr auto kNames = names_of(OptimizerRules{});

const RuleRow& rule(OptimizerKind kind) noexcept { return kRules[static_cast<std::size_t>(kind)]; }

// The floats of one part of an update, and the number of parts from which several threads compute:
// waking a thread takes longer than computing a few parts.
constexpr std::size_t kPartFloats = 16 * 1024;
constexpr std::size_t kLeastParts = 8;
// The floats that are computed in the first-level cache before their non-temporal stores.
constexpr std::size_t kStreamedFloats = 2048;

// Small vectors use one thread, because waking others takes longer than the update.
std::size_t members(std::size_t size, std::size_t threads) {
  return size < kLeastParts * kPartFloats ? 1 : threads;
}

// 1 - d_t: the step of the averaged parameters towards the current ones.
float average_rate_at(float decay, std::uint64_t step) noexcept {
  // TensorFlow's formula: at the beginning the average follows faster than the decay alone would
  // allow, so the initial values lose their weight.
  // The quotient is computed in double, because a float cannot represent large step counts.
  const auto count = static_cast<double>(step);
  return static_cast<float>(1.0 - std::min(double{decay}, (1.0 + count) / (10.0 + count)));
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

Range range_of(const Range& range) noexcept { return range; }
Range range_of(const RunningRange& each) noexcept { return each.range; }
Range range_of(const RateRange& each) noexcept { return each.range; }

// Finds the range that contains a position, among disjoint ranges in order. Positions only grow.
template <typename Ranged>
class Cursor {
 public:
  explicit Cursor(std::span<const Ranged> ranges) : left_(ranges) {}
  const Ranged* at(std::size_t position) {
    while (!left_.empty() && range_of(left_.front()).end <= position) {
      left_ = left_.subspan(1);
    }
    return left_.empty() || range_of(left_.front()).begin > position ? nullptr : &left_.front();
  }

 private:
  std::span<const Ranged> left_;
};

}  // namespace

std::span<const std::string_view> optimizer_names() noexcept { return kNames; }

std::string_view optimizer_name(OptimizerKind kind) noexcept { return name_of(kNames, kind); }

std::optional<OptimizerKind> optimizer_from_name(std::string_view name) noexcept {
  return value_of<OptimizerKind>(kNames, name);
}

float default_learning_rate(OptimizerKind kind, bool is_convolutional) noexcept {
  const float rate = rule(kind).learning_rate;
  // Rounded to six digits: a tenth of the float nearest to 0.01 is not the float nearest to 0.001.
  return is_convolutional ? static_cast<float>(std::round(double{rate} * 1e5) / 1e6) : rate;
}

float initial_state_value(std::string_view tensor) noexcept {
  for (const RuleRow& row : kRules) {
    for (const StateStart& start : row.state) {
      if (start.name == tensor) {
        return start.value;
      }
    }
  }
  return 0.0F;
}

bool is_state_tensor_name(std::string_view tensor) noexcept {
  return tensor == kAverageName || std::ranges::any_of(kRules, [&](const RuleRow& row) {
           return std::ranges::find(row.state, tensor, &StateStart::name) != row.state.end();
         });
}

std::size_t state_tensors(const OptimizerSpec& spec) noexcept {
  return rule(spec.kind).state.size() + (spec.average_decay != 0.0F ? 1 : 0);
}

void validate(const OptimizerSpec& spec) {
  constexpr std::string_view kPositive = "a finite number above 0";
  constexpr std::string_view kFraction = "at least 0 and below 1";
  require(is_positive(spec.learning_rate), "learning_rate", spec.learning_rate, kPositive);
  require(is_fraction(spec.momentum), "momentum", spec.momentum, kFraction);
  require(is_fraction(spec.beta1), "beta1", spec.beta1, kFraction);
  require(is_fraction(spec.beta2), "beta2", spec.beta2, kFraction);
  require(is_positive(spec.epsilon), "epsilon", spec.epsilon, kPositive);
  require(is_fraction(spec.weight_decay), "weight_decay", spec.weight_decay, kFraction);
  require(is_fraction(spec.average_decay), "average_decay", spec.average_decay, kFraction);
}

Optimizer::Optimizer(OptimizerSpec spec, std::size_t size, Isa isa, std::size_t threads,
                     const std::optional<std::vector<Range>>& decaying,
                     const std::vector<RunningRange>& running,
                     const std::vector<RateRange>& factors)
    : spec_(spec),
      kernels_(&kernels(isa)),
      size_(size),
      // The threads sleep between updates, because the process computes or waits for the network
      // meanwhile.
      pool_(std::make_unique<ThreadPool>(members(size, threads), ThreadPool::kSleep)) {
  validate(spec_);
  for (std::size_t each = 0; each < rule(spec_.kind).state.size(); ++each) {
    state_.emplace_back(size);
  }
  if (averages()) {
    state_.emplace_back(size);
  }
  assert(decaying || running.empty());
  std::vector<Range> decays;
  if (spec_.weight_decay != 0.0F) {
    decays = decaying.value_or(std::vector<Range>{{0, size_}});
  }
  plan_stretches(decays, running, factors);
  reset();
}

// Without weight decay, running statistics and factors the range is one stretch, so that an update
// is one loop.
void Optimizer::plan_stretches(std::span<const Range> decaying,
                               std::span<const RunningRange> running,
                               std::span<const RateRange> factors) {
  std::vector<std::size_t> borders{size_};
  const auto add_border = [&](Range range) {
    assert(range.begin <= range.end && range.end <= size_);
    borders.insert(borders.end(), {range.begin, range.end});
  };
  std::ranges::for_each(decaying, add_border);
  std::ranges::for_each(running, add_border, &RunningRange::range);
  std::ranges::for_each(factors, add_border, &RateRange::range);
  std::ranges::sort(borders);
  Cursor decays(decaying);
  Cursor runs(running);
  Cursor scales(factors);
  std::size_t begin = 0;
  for (const std::size_t end : borders) {
    if (end == begin) {
      continue;
    }
    Stretch stretch{.end = end, .decays = decays.at(begin) != nullptr, .momentum = {}};
    if (const RunningRange* const found = runs.at(begin)) {
      stretch.momentum = found->momentum;
    }
    if (const RateRange* const found = scales.at(begin)) {
      stretch.rate_factor = found->factor;
    }
    stretches_.push_back(stretch);
    begin = end;
  }
}

void Optimizer::reset() {
  const std::span<const StateStart> starts = rule(spec_.kind).state;
  for (std::size_t each = 0; each < starts.size(); ++each) {
    // The average is left alone: it begins with parameters, which begin_average() gets.
    std::ranges::fill(state_[each].span(), starts[each].value);
  }
}

void Optimizer::begin_average(std::span<const float> parameters) {
  assert(averages() && parameters.size() == size_);
  std::copy(parameters.begin(), parameters.end(), state_.back().data());
}

void Optimizer::apply(std::span<const float> parameters, std::span<float> updated,
                      std::span<const float> gradient_sum, float scale, std::uint64_t step,
                      float rate_factor, std::span<const float> last) {
  assert(parameters.size() == size_);
  assert(updated.size() == size_);
  assert(gradient_sum.size() == size_);
  assert(step > 0);
  assert(last.empty() || last.size() == size_);
  // Decoupled decay below uses this rate and not the corrected one of rate_at(), as AdamW does.
  const float rate = spec_.learning_rate * rate_factor;
  const auto rate_at = rule(spec_.kind).rate_at;
  OptimizerUpdate update{
      .w = parameters.data(),
      .w_next = updated.data(),
      .gradient = {.sum = gradient_sum.data(), .last = last.empty() ? nullptr : last.data()},
      .count = size_,
      .scale = scale,
      .rate = rate_at == nullptr ? rate : rate_at(spec_, rate, step),
      // Decoupled decay is subtracted from the weight and therefore needs the learning rate;
      // coupled decay is added to the gradient.
      .decay = rule(spec_.kind).decouples_decay ? rate * spec_.weight_decay : spec_.weight_decay,
      .spec = &spec_};
  for (std::size_t each = 0; each < rule(spec_.kind).state.size(); ++each) {
    update.state[each] = state_[each].data();
  }
  const float average_rate = average_rate_at(spec_.average_decay, step);
  // More parts than members, so that a member that wakes up late takes fewer.
  const EvenParts parts(size_, kPartFloats, pool_->size() == 1 ? 1 : size_ / kPartFloats);
  pool_->run(parts.count(), [&](std::size_t number, std::size_t) {
    apply_part(update, average_rate, parts.begin(number), parts.end(number));
  });
}

void Optimizer::apply_part(const OptimizerUpdate& whole, float average_rate, std::size_t begin,
                           std::size_t end) noexcept {
  // In place the old parameters are in the cache anyway, so normal stores are faster.
  if (!streams_ || whole.w == whole.w_next) {
    apply_part(whole, average_rate, begin, end, whole.w_next + begin);
    return;
  }
  // The update is computed in a small buffer that stays in the first-level cache, because
  // non-temporal stores must write whole lines once.
  alignas(AlignedVector::kAlignmentBytes) std::array<float, kStreamedFloats> made;
  for (std::size_t at = begin; at < end; at += made.size()) {
    const std::size_t count = std::min(end - at, made.size());
    apply_part(whole, average_rate, at, at + count, made.data());
    store_non_temporal(made.data(), whole.w_next + at, count);
  }
  // Non-temporal stores become visible to other threads only after the fence.
  fence_non_temporal_stores();
}

void Optimizer::apply_part(const OptimizerUpdate& whole, float average_rate, std::size_t begin,
                           std::size_t end, float* to) noexcept {
  std::size_t at = begin;
  // A search, since a program may have many thousands of stretches.
  auto stretch = std::ranges::upper_bound(stretches_, begin, {}, &Stretch::end);
  for (; at < end; ++stretch) {
    // A part of the update can begin and end inside a stretch. Updates are element-wise, so cutting
    // a stretch changes no bit.
    Stretch part = *stretch;
    part.end = std::min(stretch->end, end);
    apply_stretch(whole, at, part, to + (at - begin));
    at = part.end;
  }
  // The average uses the parameters while they are still in the cache.
  if (averages()) {
    kernels_->average(state_.back().data() + begin, to, average_rate, end - begin);
  }
}

void Optimizer::apply_stretch(const OptimizerUpdate& whole, std::size_t begin,
                              const Stretch& stretch, float* to) noexcept {
  OptimizerUpdate part = whole;
  part.w += begin;
  part.w_next = to;
  part.gradient.sum += begin;
  if (part.gradient.last != nullptr) {
    part.gradient.last += begin;
  }
  for (std::size_t each = 0; each < rule(spec_.kind).state.size(); ++each) {
    part.state[each] += begin;
  }
  part.count = stretch.end - begin;
  // Running statistics follow the batch's values and must not be changed by a gradient rule.
  if (stretch.momentum) {
    kernels_->update_running(part, *stretch.momentum);
    return;
  }
  // Without an update, and not with a rate of 0: that would turn -0 into 0 and change the state.
  if (stretch.rate_factor == 0.0F) {
    if (part.w != part.w_next) {
      std::copy_n(part.w, part.count, part.w_next);
    }
    return;
  }
  part.rate *= stretch.rate_factor;
  if (!stretch.decays) {
    part.decay = 0.0F;
  } else if (rule(spec_.kind).decouples_decay) {
    part.decay *= stretch.rate_factor;
  }
  kernels_->update[static_cast<std::size_t>(spec_.kind)](part);
}

std::vector<StateTensor> Optimizer::state() {
  std::vector<StateTensor> tensors;
  const std::span<const StateStart> starts = rule(spec_.kind).state;
  for (std::size_t each = 0; each < state_.size(); ++each) {
    const std::string_view name = each < starts.size() ? starts[each].name : kAverageName;
    tensors.push_back({.name = name, .values = state_[each].span()});
  }
  return tensors;
}

void add(std::span<float> to, std::span<const float> a, std::span<const float> b, Isa isa) {
  assert(to.size() == a.size() && to.size() == b.size());
  kernels(isa).add(to.data(), a.data(), b.data(), to.size());
}

}  // namespace disttf::math
