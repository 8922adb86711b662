// Measures the cost of a fixed order of sums on a ps: a Shard that keeps the gradients and adds
// them as a tree over the ranks, beside the same kernels that add each gradient as it arrives and
// keep only the sum.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/benchmarks.h"
#include "math/aligned.h"
#include "math/model.h"
#include "math/optimizer.h"
#include "roles/ps/core/shard.h"

namespace disttf::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

// The order in which the ranks' gradients arrive.
using Arrivals = std::vector<std::size_t>;

// The time of a step of a ps from the first byte of the first gradient on. A copy stands in for the
// kernel's work when a gradient is received.
struct StepTime {
  Microseconds all{};
  Microseconds after_last{};  // from the last gradient's arrival on: all trainers wait for this
};

std::vector<math::AlignedVector> make_gradients(std::size_t trainers) {
  std::vector<math::AlignedVector> gradients;
  for (std::size_t rank = 0; rank < trainers; ++rank) {
    math::AlignedVector& gradient =
        gradients.emplace_back(math::layout_of(bench_model("mlp_100")).size());
    for (std::size_t each = 0; each < gradient.size(); ++each) {
      gradient.span()[each] = static_cast<float>((each * 7 + rank * 13) % 1000) * 1e-3F - 0.5F;
    }
  }
  return gradients;
}

void receive(std::span<const float> gradient, std::span<float> destination) {
  std::memcpy(destination.data(), gradient.data(), gradient.size_bytes());
}

class ByRank {
 public:
  ByRank(std::span<const math::AlignedVector> gradients, Arrivals arrivals)
      : gradients_(gradients),
        arrivals_(std::move(arrivals)),
        shard_(config(gradients.size()), {.begin = 0, .end = gradients.front().size()}) {
    std::ranges::fill(shard_.begin_restore(/*parameters_only=*/true).front(), 0.0F);
    shard_.finish_restore(0);
  }

  StepTime step() {
    const auto begin = Clock::now();
    auto last = begin;
    const std::uint64_t step = shard_.step();
    for (const std::size_t rank : arrivals_) {
      const roles::PushId push{
          .trainer = rank, .incarnation = 1, .step = step, .sequence = step + 1};
      receive(gradients_[rank].span(), shard_.admit(push).destination);
      last = Clock::now();
      shard_.commit(push);
    }
    const auto end = Clock::now();
    return {.all = end - begin, .after_last = end - last};
  }

  [[nodiscard]] std::span<const float> parameters() { return shard_.parameters(); }

 private:
  static roles::RunConfig config(std::size_t trainers) {
    roles::RunConfig config;
    config.model = bench_model("mlp_100");
    config.rate_decay = math::RateDecay::kNone;
    config.isa = math::supported_isas().front();
    config.train_steps = std::uint64_t{1} << 50U;
    config.trainers = trainers;
    return config;
  }

  std::span<const math::AlignedVector> gradients_;
  Arrivals arrivals_;
  roles::Shard shard_;
};

class OnArrival {
 public:
  explicit OnArrival(std::span<const math::AlignedVector> gradients)
      : gradients_(gradients),
        optimizer_({}, gradients.front().size(), math::supported_isas().front()),
        inbox_(gradients.front().size()),
        sum_(gradients.front().size()),
        parameters_(gradients.front().size()),
        updated_(gradients.front().size()) {}

  StepTime step() {
    const auto begin = Clock::now();
    auto last = begin;
    for (std::size_t rank = 0; rank < gradients_.size(); ++rank) {
      receive(gradients_[rank].span(), rank == 0 ? sum_.span() : inbox_.span());
      last = Clock::now();
      if (rank > 0) {
        math::add(sum_.span(), sum_.span(), inbox_.span(), math::supported_isas().front());
      }
    }
    optimizer_.apply(parameters_.span(), updated_.span(), sum_.span(),
                     1.0F / static_cast<float>(gradients_.size()), ++step_);
    std::swap(parameters_, updated_);
    const auto end = Clock::now();
    return {.all = end - begin, .after_last = end - last};
  }

  [[nodiscard]] std::span<const float> parameters() const { return parameters_.span(); }

 private:
  std::span<const math::AlignedVector> gradients_;
  math::Optimizer optimizer_;
  math::AlignedVector inbox_;
  math::AlignedVector sum_;
  math::AlignedVector parameters_;
  math::AlignedVector updated_;
  std::uint64_t step_ = 0;
};

// The mean step times of each round.
class Rounds {
 public:
  template <typename Side>
  void run(Side& side) {
    constexpr int kSteps = 100;
    StepTime sum;
    for (int each = 0; each < kSteps; ++each) {
      const StepTime time = side.step();
      sum.all += time.all;
      sum.after_last += time.after_last;
    }
    all_.push_back(sum.all.count() / kSteps);
    after_last_.push_back(sum.after_last.count() / kSteps);
  }

  // `base`: the rounds of the paired floor, named `floor`; null: these rounds are a floor.
  [[nodiscard]] Figure figure(const std::string& name, const std::string& floor = {},
                              const Rounds* base = nullptr) const {
    return {.name = name,
            .median = median(all_),
            .slowest = *std::ranges::max_element(all_),
            .unit = "us",
            .floor = floor,
            .ratio = base == nullptr ? std::nullopt : std::optional(ratio_to(*base)),
            .extras = {{"after_last_us", median(after_last_)}}};
  }

 private:
  [[nodiscard]] double ratio_to(const Rounds& base) const {
    std::vector<double> ratios(all_.size());
    std::ranges::transform(all_, base.all_, ratios.begin(), std::divides<>());
    return median(ratios);
  }

  std::vector<double> all_;
  std::vector<double> after_last_;
};

// Throws unless both sides computed the same result.
void expect_same(std::span<const float> left, std::span<const float> right) {
  if (std::memcmp(left.data(), right.data(), left.size_bytes()) != 0) {
    throw std::runtime_error("parameters differ between two orders of arrival");
  }
}

// The order of additions differs, so results are equal except for rounding.
void expect_close(std::span<const float> left, std::span<const float> right) {
  const auto is_far = [](float a, float b) {
    return !(std::abs(a - b) <= 1e-3F * (std::abs(a) + std::abs(b)) + 1e-4F);
  };
  if (std::ranges::mismatch(left, right, std::not_fn(is_far)).in1 != left.end()) {
    throw std::runtime_error("parameters differ between sums by rank and on arrival");
  }
}

void run_sums_of(std::size_t trainers, int rounds, Reporter& reporter) {
  const std::vector<math::AlignedVector> gradients = make_gradients(trainers);
  Arrivals in_order(trainers);
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  OnArrival on_arrival(gradients);
  ByRank by_rank(gradients, in_order);
  ByRank reversed(gradients, Arrivals(in_order.rbegin(), in_order.rend()));
  Rounds of_arrival;
  Rounds of_rank;
  Rounds of_reversed;
  for (int round = 0; round < rounds; ++round) {
    of_arrival.run(on_arrival);
    of_rank.run(by_rank);
    of_reversed.run(reversed);
  }
  expect_close(on_arrival.parameters(), by_rank.parameters());
  expect_same(by_rank.parameters(), reversed.parameters());
  const std::string count = "/" + std::to_string(trainers);
  const std::string floor = "sum_on_arrival" + count;
  reporter.add(of_arrival.figure(floor));
  reporter.add(of_rank.figure("sum_by_rank/in_order" + count, floor, &of_arrival));
  reporter.add(of_reversed.figure("sum_by_rank/last_first" + count, floor, &of_arrival));
}

}  // namespace

void run_sums(const JobOptions& options, Reporter& reporter) {
  constexpr int kRoundsPerRepetition = 4;
  for (const std::size_t trainers : {2U, 8U}) {
    const std::string count = "/" + std::to_string(trainers);
    if (options.wants("sum_on_arrival" + count) || options.wants("sum_by_rank/in_order" + count) ||
        options.wants("sum_by_rank/last_first" + count)) {
      run_sums_of(trainers, options.repetitions * kRoundsPerRepetition, reporter);
    }
  }
}

}  // namespace disttf::bench
