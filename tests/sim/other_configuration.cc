#include "tests/sim/other_configuration.h"

#include <array>
#include <chrono>

#include "tests/sim/world.h"

namespace disttf::sim {

void draw_other_configuration(Scenario& scenario) {
  const World dice(scenario.seed, /*trace=*/false, nullptr);
  std::uint64_t drawn = 0;
  const auto below = [&](std::uint64_t limit) {
    return dice.below(limit, Draw::kOtherConfiguration, 0, drawn++);
  };
  const roles::RunConfig& config = scenario.config;
  if (!config.every_gradient_counts() || config.elastic() || scenario.has_disk || scenario.launch ||
      scenario.has_evaluator || below(2) == 0) {
    return;
  }
  roles::RunConfig other = config;
  other.seed = config.seed + 1;
  other.optimizer.learning_rate *= 2;
  other.train_steps = config.train_steps + below(3);
  if (scenario.ps > 1 && below(2) == 0) {
    other.ps_replicas = config.ps_replicas == 1 ? 2 : 1;
  }
  scenario.other_config = other;
  constexpr std::array kMoments = {net::FrameKind::kRestore, net::FrameKind::kPull,
                                   net::FrameKind::kPushPull, net::FrameKind::kGoodbye,
                                   net::FrameKind::kPublish};
  const std::uint64_t length_us =
      config.train_steps * (scenario.pace.compute_us + 1000) + 1'000'000;
  for (std::uint64_t count = 1 + below(2); count > 0; --count) {
    Fault fault{.kind = Fault::Kind::kBeginAnew};
    if (below(2) == 0) {
      fault.on = kMoments.at(below(kMoments.size()));
      fault.nth = 1 + below(12);
    }
    fault.at = std::chrono::microseconds(below(length_us));
    fault.detail = below(1U << 16U);
    scenario.faults.push_back(fault);
  }
}

}  // namespace disttf::sim
