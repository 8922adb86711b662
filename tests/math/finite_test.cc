#include "math/finite.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <vector>

#include "tests/math/isa_test.h"

namespace disttf::math {
namespace {

using Values = std::vector<float>;
using Limits = std::numeric_limits<float>;

class Finite : public IsaTest {
 protected:
  [[nodiscard]] static bool is_finite(const Values& values) { return all_finite(values, isa()); }
};
INSTANTIATE_TEST_SUITE_P(Isas, Finite, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(Finite, AreAllNumbersHoweverLargeOrSmall) {
  EXPECT_TRUE(is_finite({}));
  EXPECT_TRUE(is_finite({0.0F, -0.0F, Limits::max(), Limits::lowest(), Limits::denorm_min()}));
  EXPECT_TRUE(is_finite(Values(1000, Limits::lowest())));
}

// In whole vector registers and after them.
TEST_P(Finite, IsNotWhereOneValueIsNoNumber) {
  for (const float value : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                            -Limits::quiet_NaN(), Limits::signaling_NaN()}) {
    for (std::size_t size = 1; size < 130; size += 3) {
      for (std::size_t at = 0; at < size; ++at) {
        Values values(size, 1.0F);
        values[at] = value;
        ASSERT_FALSE(is_finite(values)) << value << " at " << at << " of " << size;
      }
    }
  }
}

}  // namespace
}  // namespace disttf::math
