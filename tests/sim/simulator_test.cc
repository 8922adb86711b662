// A slice of what `make simulate` does.
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
  constexpr std::uint64_t kSeeds = 40;  // with a sanitizer each takes ten times as long
#endif
  const std::uint64_t first = 1 + kSeeds * static_cast<std::uint64_t>(GetParam());
  for (std::uint64_t seed = first; seed < first + kSeeds; ++seed) {
    const Outcome outcome = simulate(scenario_of(seed));
    EXPECT_EQ(outcome.violation, "") << "disttf_simulate --replay " << seed << " --trace";
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, SimulatorTest, testing::Range(0, 4));

TEST(SimulatorTest, TheSameSeedIsTheSameRun) {
  math::flush_denormals();
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const Scenario scenario = scenario_of(seed);
    EXPECT_EQ(simulate(scenario).hash, simulate(scenario).hash) << seed;
  }
}

}  // namespace
}  // namespace disttf::sim
