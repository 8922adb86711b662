#include "tests/sim/checks.h"

#include <algorithm>
#include <cstring>

#include "tests/sim/network.h"

namespace disttf::sim {
namespace {

// The number of components that pushes can have in a range: each whole page has as many.
constexpr std::size_t kComponents = math::kShardAlignmentFloats;

std::span<const float> floats_of(std::span<const std::byte> body) {
  return {reinterpret_cast<const float*>(body.data()), body.size() / sizeof(float)};
}

std::string at_step(std::size_t range, net::Generation generation, std::uint64_t step) {
  return "range " + std::to_string(range) + ", generation " +
         std::to_string(net::number_of(generation)) + ", step " + std::to_string(step);
}

}  // namespace

Checks::Checks(World& world, const roles::RunConfig& config, std::size_t size, std::size_t ps)
    : world_(world), config_(config), size_(size), ps_(ps), ranges_(ps) {
  if (is_exact()) {
    oracle_.add(config, size);
  }
  const std::size_t counted = config.sync_replicas ? config.replicas_to_aggregate : 1;
  const float mean = 1.0F * (1.0F / static_cast<float>(std::max<std::size_t>(counted, 1)));
  applied_ = 0.0F - config.optimizer.learning_rate * mean;
}

math::Range Checks::range(std::size_t index) const { return math::shard_range(size_, index, ps_); }

Checks::Components Checks::take_components(std::size_t rank, const Places& places) {
  if (is_exact()) {
    return {};
  }
  const std::size_t next = next_component_++;
  Components components(ps_, next);
  for (std::size_t index = 0; index < ps_ && config_.sync_replicas; ++index) {
    const auto& [state, step] = places[index];
    components[index] =
        ranges_[index][state].components.try_emplace({step, rank}, next).first->second;
  }
  return components;
}

void Checks::rows_are_taken(const std::string& who, const roles::Stepper::Batch& batch,
                            std::uint64_t step, std::size_t rank) {
  const bool is_slot = config_.elastic() ? batch.slot < config_.micro_batches : batch.slot == rank;
  if (config_.sync_replicas && (batch.step != step || !is_slot)) {
    world_.violate(who + " computes step " + std::to_string(step) + " from the rows of slot " +
                   std::to_string(batch.slot) + " in step " + std::to_string(batch.step) +
                   " (invariant 21)");
  }
}

void Checks::fill_gradient(std::span<const float> parameters, std::uint64_t step, std::size_t slot,
                           const Components& components, std::span<float> gradient,
                           std::uint64_t seed) const {
  if (is_exact()) {
    compute_gradient(parameters, step, slot, gradient, seed);
    return;
  }
  std::ranges::fill(gradient, 0.0F);
  for (std::size_t index = 0; index < ps_; ++index) {
    if (components[index] < kComponents) {
      gradient[range(index).begin + components[index]] = 1.0F;
    }
  }
}

void Checks::parameters_came(const std::string& who, std::size_t range,
                             const net::FrameHeader& header, std::span<const std::byte> body) {
  oracle_.about(header.generation);
  const math::Range part = this->range(range);
  if (body.size() != part.size() * sizeof(float) || header.step > last_step()) {
    world_.violate(who + " was sent parameters of no step of the run: " +
                   at_step(range, header.generation, header.step));
    return;
  }
  if (is_exact()) {
    const bool is_final = (header.flags & net::kFlagFinished) != 0;
    const std::span<const float> expected =
        is_final ? oracle_->result() : oracle_->parameters_at(header.step);
    if (std::memcmp(expected.data() + part.begin, body.data(), body.size()) != 0 ||
        (is_final && header.step != last_step())) {
      world_.violate("parameters that are not the oracle's (invariant 1) came to " + who + ": " +
                     at_step(range, header.generation, header.step));
    }
    return;
  }
  std::size_t used = 0;
  for (const float value : floats_of(body)) {
    if (value == applied_) {
      ++used;
    } else if (value != 0.0F) {
      world_.violate("a push was applied " + std::to_string(value / applied_) +
                     " times (invariants 2, 9), as " + who +
                     " sees: " + at_step(range, header.generation, header.step));
      return;
    }
  }
  const std::uint64_t each = config_.sync_replicas ? config_.replicas_to_aggregate : 1;
  const bool began_once = world_.marks().at(static_cast<std::size_t>(Mark::kRestore)) == 1;
  if (began_once && next_component_ <= kComponents && used != each * header.step) {
    world_.violate(std::to_string(used) + " pushes made these parameters (invariant 13), as " +
                   who + " sees: " + at_step(range, header.generation, header.step));
  }
}

void Checks::push_acknowledged(std::size_t range, const StateName& state, std::size_t component,
                               const PushName& push) {
  if (!is_exact() && component < kComponents) {
    ranges_[range][state].used.insert(component);
    ranges_[range][state].pushes.try_emplace(component, push);
  }
}

void Checks::push_dropped(std::size_t range, const StateName& state, std::size_t component,
                          const PushName& push) {
  world_.mark(Mark::kDropped);
  if (component < kComponents) {
    ranges_[range][state].unused.insert(component);
    ranges_[range][state].pushes.try_emplace(component, push);
  }
}

void Checks::host_is_at(const std::string& who, std::size_t range, std::uint64_t process,
                        net::Generation generation, std::uint64_t step) {
  Host& host = hosts_[{process, range}];
  if (generation < host.generation || (generation == host.generation && step < host.step)) {
    world_.violate(who + " went back (invariant 3): from " +
                   at_step(range, host.generation, host.step) + " to " +
                   at_step(range, generation, step));
  }
  host = {.generation = generation, .step = step};
}

void Checks::host_acknowledges(const std::string& who, std::size_t range, const StateName& state,
                               net::ViewNumber view, std::uint64_t step) {
  State& seen = ranges_[range][state];
  if (view > seen.view) {
    const auto promotion = seen.promoted_at.find(view);
    if (promotion != seen.promoted_at.end() && promotion->second < seen.acknowledged) {
      world_.violate(who + " has taken the range over without step " +
                     std::to_string(seen.acknowledged) +
                     ", which was acknowledged (invariant 5): " +
                     at_step(range, state.generation, promotion->second));
    }
    seen.view = view;
  }
  const auto promotion = seen.promoted_at.find(seen.view);
  if (view < seen.view && promotion != seen.promoted_at.end() && step > promotion->second) {
    world_.violate(who + " acknowledges in view " + std::to_string(view.count) + " though view " +
                   std::to_string(seen.view.count) +
                   " has another primary (invariant 7): " + at_step(range, state.generation, step));
  }
  seen.acknowledged = std::max(seen.acknowledged, step);
}

void Checks::host_answers(std::size_t range, const StateName& state, const net::View& view,
                          std::uint64_t step, const std::optional<PushName>& push) {
  State& seen = ranges_[range][state];
  Answered& answered = seen.answered[view.number];
  answered = {.in_pair = view.paired, .step = std::max(answered.step, step)};
  if (push) {
    seen.answered_in.try_emplace(*push, view.number);
  }
}

void Checks::host_goes_on(const std::string& who, std::size_t range, const StateName& state,
                          net::ViewNumber view, std::uint64_t step,
                          std::span<const float> parameters) {
  State& seen = ranges_[range][state];
  Witnesses::Views lost;
  for (const auto& [number, answered] : seen.answered) {
    if (number < view && !answered.in_pair && answered.step > step &&
        !seen.remembered.contains(number)) {
      lost.insert(number);
    }
  }
  if (lost.empty()) {
    return;
  }
  if (witnesses_.is_any_left(range, lost, state, step)) {
    seen.remembered.merge(lost);
    return;
  }
  world_.log("--- no process is left that has recorded more: " + who + " goes on with " +
             at_step(range, state.generation, step));
  const auto is_lost = [&](std::size_t component) {
    const auto push = seen.pushes.find(component);
    const auto view_of =
        push == seen.pushes.end() ? seen.answered_in.end() : seen.answered_in.find(push->second);
    return view_of != seen.answered_in.end() && lost.contains(view_of->second);
  };
  std::erase_if(seen.used, [&](std::size_t component) {
    return is_lost(component) && parameters[component] == 0.0F;
  });
  std::erase_if(seen.unused, is_lost);
  std::erase_if(seen.answered, [&](const auto& each) { return lost.contains(each.first); });
  seen.acknowledged = 0;
  for (const auto& [number, answered] : seen.answered) {
    seen.acknowledged = std::max(seen.acknowledged, answered.step);
  }
}

void Checks::host_was_promoted(std::size_t range, const StateName& state, net::ViewNumber view,
                               std::uint64_t step) {
  world_.mark(Mark::kPromotion);
  ranges_[range][state].promoted_at[view] = step;
}

void Checks::host_made_step(const std::string& who, std::size_t range, const StateName& state,
                            net::ViewNumber view, std::uint64_t step,
                            std::span<const float> parameters, bool is_copy) {
  if (is_exact()) {
    oracle_.about(state.generation);
    if (step > last_step() || !is_state(step, this->range(range).begin, parameters)) {
      world_.violate(who + " holds parameters that are not the oracle's (invariants 1, 6): " +
                     at_step(range, state.generation, step));
    }
    return;
  }
  const std::uint64_t sum = sum_of(std::as_bytes(parameters));
  std::map<std::uint64_t, Made>& made = ranges_[range][state].made;
  const auto found = made.find(step);
  if (!is_copy) {
    if (found == made.end() || view >= found->second.view) {
      made[step] = {.view = view, .sum = sum};
    }
  } else if (found != made.end() && found->second.sum != sum) {
    world_.violate(who + " holds another copy than its primary (invariant 6): " +
                   at_step(range, state.generation, step));
  }
}

// After the last step a ps may also hold the result: a ps that was lost then is restored from the
// chief's parameters.
bool Checks::is_state(std::uint64_t step, std::size_t begin, std::span<const float> parameters) {
  const auto is = [&](std::span<const float> expected) {
    return std::memcmp(expected.data() + begin, parameters.data(), parameters.size_bytes()) == 0;
  };
  return is(oracle_->parameters_at(step)) || (step == last_step() && is(oracle_->result()));
}

void Checks::snapshot_collected(const std::string& who, std::uint64_t step,
                                std::span<const float> parameters) {
  const auto is_right = [&] { return step <= last_step() && is_state(step, 0, parameters); };
  if (is_exact() && !oracle_.any(is_right)) {
    world_.violate(who + " has a snapshot that is not the oracle's (invariant 10): step " +
                   std::to_string(step));
  }
}

// Intermediate averages are not checked: only the ps have them.
void Checks::snapshot_scored(const std::string& who, std::uint64_t step,
                             const std::vector<net::Generation>& generations, bool is_result,
                             std::span<const float> parameters) {
  oracle_.about(generations.front());
  const std::string what = who + " scores step " + std::to_string(step);
  if (!is_result &&
      std::ranges::adjacent_find(generations, std::ranges::not_equal_to{}) != generations.end()) {
    world_.violate(what + " of ranges that were set to different states (invariant 19)");
  } else if (is_exact()) {
    const bool is_averaged = config_.optimizer.average_decay != 0;
    const bool is_right =
        step <= last_step() &&
        (is_result ? std::ranges::equal(oracle_->result(), parameters) && step == last_step()
                   : is_averaged || is_state(step, 0, parameters));
    if (!is_right) {
      world_.violate(what + ", and what it has put together is not the oracle's (invariant 19)");
    }
  } else if (std::ranges::any_of(
                 parameters, [this](float value) { return value != 0.0F && value != applied_; })) {
    world_.violate(what + ", in which a push was applied in part or twice (invariant 19)");
  }
}

void Checks::task_is_done(const std::string& who) {
  if (!chief_has_printed_) {
    world_.violate(who + " ends with 0 before the chief has printed the result (invariant 18)");
  }
}

void Checks::result(const std::string& who, bool is_chief, std::uint64_t step,
                    const std::vector<StateName>& states, std::span<const float> parameters) {
  chief_has_printed_ = chief_has_printed_ || is_chief;
  if (is_chief) {
    result_step_ = step;
  }
  if (is_chief && step < config_.train_steps) {
    world_.mark(Mark::kEndedEarly);
  }
  if (is_exact()) {
    oracle_.about(states.front().generation);
    const std::span<const float> expected = oracle_->result();
    if (step != last_step() ||
        std::memcmp(expected.data(), parameters.data(), parameters.size_bytes()) != 0) {
      world_.violate("the result of " + who + " is not the oracle's (invariant 1): step " +
                     std::to_string(step));
    }
    return;
  }
  for (std::size_t index = 0; index < ps_; ++index) {
    const std::span<const float> part = parameters.subspan(range(index).begin, range(index).size());
    for (const std::size_t component : ranges_[index][states[index]].used) {
      if (part[component] == 0.0F) {
        world_.violate("the result of " + who + " lacks push " + std::to_string(component) +
                       " of range " + std::to_string(index) +
                       ", which was acknowledged (invariant 8)");
        return;
      }
    }
    for (const std::size_t component : ranges_[index][states[index]].unused) {
      if (part[component] != 0.0F) {
        world_.violate("the result of " + who + " has push " + std::to_string(component) +
                       " of range " + std::to_string(index) + ", which was dropped (invariant 13)");
        return;
      }
    }
  }
  const std::uint64_t sum = sum_of(std::as_bytes(parameters));
  if (is_chief) {
    result_ = sum;
  } else if (result_ && *result_ != sum) {
    world_.violate("the result of " + who + " is not the chief's");
  }
}

}  // namespace disttf::sim
