// A small part of what `make simulate` does.
#include <gtest/gtest.h>

#include "math/denormals.h"
#include "tests/sim/scenario.h"

namespace disttf::sim {
namespace {

class SimulatorTest : public testing::TestWithParam<int> {};

TEST_P(SimulatorTest, KeepsItsPromisesWhateverFails) {
  math::flush_denormals();
#ifdef NDEBUG
  constexpr std::uint64_t kSeeds = 400;
#else
  constexpr std::uint64_t kSeeds = 40;  // a sanitizer makes each ten times as slow
#endif
  const std::uint64_t first = 1 + kSeeds * static_cast<std::uint64_t>(GetParam());
  for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
    const Outcome outcome = simulate(scenario_of(seed));
    EXPECT_EQ(outcome.violation, "") << "disttf_simulate --replay " << seed << " --trace";
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, SimulatorTest, testing::Range(0, 4));

// Faults that a search of 1 000 000 has found to break a promise.
TEST(SimulatorTest, RunsThatOnceBrokeAPromiseKeepIt) {
  constexpr std::uint64_t kRestartedWhileAPsWrites = 20305274;
  constexpr std::uint64_t kPushAfterTheFirstGoodbye = 20273153;
  constexpr std::uint64_t kRefusingPsIsLost = 20294865;
  constexpr std::uint64_t kPsOfTwoConfigurations = 20376723;
  constexpr std::uint64_t kDiskLosesPowerInTheLastSave = 491353;
  for (const std::uint64_t seed :
       {kRestartedWhileAPsWrites, kPushAfterTheFirstGoodbye, kRefusingPsIsLost,
        kPsOfTwoConfigurations, kDiskLosesPowerInTheLastSave}) {
    EXPECT_EQ(simulate(scenario_of(seed)).violation, "") << seed;
  }
}

TEST(SimulatorTest, TheSameSeedIsTheSameRun) {
  math::flush_denormals();
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const Scenario scenario = scenario_of(seed);
    EXPECT_EQ(simulate(scenario).hash, simulate(scenario).hash) << seed;
  }
}

// An evaluator vanishes while others wait for it, of which no ps is notified; another one replaces
// it.
TEST(SimulatorTest, AnEvaluatorDelaysNoTrainer) {
  math::flush_denormals();
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    Scenario scenario = scenario_of(seed);
    scenario.launch.reset();
    scenario.faults.clear();
    scenario.pace.slow_one_in = 0;
    scenario.network.slow_one_in = 0;
    scenario.network.split_one_in = 0;  // a body could arrive seconds after its header
    scenario.has_evaluator = false;
    scenario.evaluates_directory = false;  // this test is about an evaluator that reads from the ps
    const Outcome without = simulate(scenario);
    scenario.has_evaluator = true;
    scenario.faults.push_back({.kind = Fault::Kind::kVanish,
                               .on = net::FrameKind::kWatch,
                               .nth = 1 + seed % 4,
                               .to_sender = true});
    const Outcome with = simulate(scenario);
    EXPECT_EQ(with.violation, "") << seed;
    EXPECT_LT(with.trained, without.trained + std::chrono::seconds(2)) << to_string(scenario);
  }
}

}  // namespace
}  // namespace disttf::sim
