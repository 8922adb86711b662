#include "roles/launch/core/fault_plan.h"

#include <utility>

#include "math/random.h"

namespace disttf::roles {
namespace {

// What a step's random numbers decide: streams of Purpose::kProcessFault, indexed by the step. The
// meaning of a seed depends on these values: append, never renumber.
enum class Draw : std::uint64_t { kWhether = 0, kTask = 1, kKind = 2, kFrozenFor = 3, kPart = 4 };

constexpr std::uint64_t kParts = 3;
constexpr std::uint64_t kShortestFreezeMs = 50;
constexpr std::uint64_t kLongestFreezeMs = 2000;

std::uint64_t draw(std::uint64_t seed, Draw what, std::uint64_t step) {
  return math::random_bits(seed, static_cast<std::uint32_t>(math::Purpose::kProcessFault),
                           static_cast<std::uint64_t>(what), step);
}

// A number below `limit`, with a bias of less than limit / 2^64.
std::uint64_t draw_below(std::uint64_t limit, std::uint64_t seed, Draw what, std::uint64_t step) {
  return draw(seed, what, step) % limit;
}

}  // namespace

FaultPlan::FaultPlan(const ChaosOptions& options, std::vector<std::size_t> tasks)
    : options_(options), tasks_(std::move(tasks)) {}

std::optional<ProcessFault> FaultPlan::at(std::uint64_t step) const {
  if (draw_below(1000, options_.seed, Draw::kWhether, step) >= options_.per_1000) {
    return std::nullopt;
  }
  ProcessFault fault{
      .step = step,
      .task = tasks_[draw_below(tasks_.size(), options_.seed, Draw::kTask, step)],
      .kind = draw_below(2, options_.seed, Draw::kKind, step) == 0 ? ProcessFault::Kind::kKill
                                                                   : ProcessFault::Kind::kFreeze,
      .part =
          static_cast<ProcessFault::Part>(draw_below(kParts, options_.seed, Draw::kPart, step))};
  if (fault.kind == ProcessFault::Kind::kFreeze) {
    // Both ends of the range are included, hence the + 1.
    fault.frozen_for = std::chrono::milliseconds(
        kShortestFreezeMs + draw_below(kLongestFreezeMs - kShortestFreezeMs + 1, options_.seed,
                                       Draw::kFrozenFor, step));
  }
  return fault;
}

std::vector<ProcessFault> FaultPlan::take_until(std::uint64_t step) {
  std::vector<ProcessFault> due;
  // A run that continues from a checkpoint begins far from step 0; earlier steps are not its own.
  // After a roll back `next` exceeds `step`, so the loop returns nothing and `taken_` stays.
  std::uint64_t next = taken_ ? *taken_ + 1 : step;
  for (; next <= step; ++next) {
    if (const auto fault = at(next)) {
      due.push_back(*fault);
    }
    taken_ = next;
  }
  return due;
}

}  // namespace disttf::roles
