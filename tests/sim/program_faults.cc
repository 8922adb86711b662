#include "tests/sim/program_faults.h"

#include <array>
#include <chrono>

#include "tests/sim/world.h"

namespace disttf::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class ProgramDice {
 public:
  explicit ProgramDice(std::uint64_t seed) : world_(seed, /*trace=*/false, nullptr) {}
  std::uint64_t below(std::uint64_t limit) {
    return world_.below(limit, Draw::kProgram, 0, drawn_++);
  }
  bool one_in(std::uint64_t times) { return below(times) == 0; }

 private:
  const World world_;
  std::uint64_t drawn_ = 0;
};

Duration duration_of_freeze(ProgramDice& dice) {
  return dice.one_in(3) ? milliseconds(5000 + dice.below(60'000))
                        : milliseconds(1 + dice.below(3000));
}

}  // namespace

void draw_program(Scenario& scenario) {
  ProgramDice dice(scenario.seed);
  if (!dice.one_in(4)) {
    return;
  }
  constexpr std::array<std::uint64_t, 3> kImports = {5, 100, 2000};
  scenario.program = {.import_ms = kImports.at(dice.below(kImports.size())),
                      .save_ms = dice.one_in(4) ? 20'000U : 5U,
                      .has_spare = !dice.one_in(4),
                      .asks_rows = dice.one_in(3),
                      .ignores_abort = dice.one_in(4),
                      .start_fails_one_in = dice.one_in(4) ? 4U : 0U,
                      .timeout = std::chrono::seconds(4 + dice.below(4))};
  constexpr std::array kMoments = {net::FrameKind::kPushPull, net::FrameKind::kParameters,
                                   net::FrameKind::kPull, net::FrameKind::kGoodbye,
                                   net::FrameKind::kPush};
  const std::uint64_t steps = scenario.config.train_steps;
  const std::uint64_t length_us =
      steps * (scenario.pace.compute_us + 1000) + 1'000'000 + 2000 * scenario.program->import_ms;
  // Mostly of one trainer, since successive deaths count.
  const std::size_t victim = scenario.ps + dice.below(scenario.trainers);
  for (std::uint64_t count = dice.below(9); count > 0; --count) {
    Fault fault{.kind =
                    dice.below(3) == 0 ? Fault::Kind::kFreezeProgram : Fault::Kind::kKillProgram};
    if (dice.one_in(2)) {
      fault.on = kMoments.at(dice.below(kMoments.size()));
      fault.nth = 1 + dice.below(steps * scenario.trainers * scenario.ps);
    }
    fault.at = microseconds(dice.below(length_us));
    fault.node = dice.one_in(3) ? scenario.ps + dice.below(scenario.trainers) : victim;
    fault.duration = duration_of_freeze(dice);
    fault.detail = dice.below(std::uint64_t{1} << 32U);
    fault.is_named = true;
    scenario.faults.push_back(fault);
  }
  if (dice.one_in(8)) {
    scenario.faults.push_back(
        {.kind = Fault::Kind::kWrongProgram,
         .on = scenario.config.elastic() ? net::FrameKind::kPush : net::FrameKind::kPushPull,
         .nth = 1 + dice.below(steps),
         .node = scenario.ps + dice.below(scenario.trainers),
         .detail = dice.below(std::uint64_t{1} << 32U),
         .is_named = true});
  }
}

}  // namespace disttf::sim
