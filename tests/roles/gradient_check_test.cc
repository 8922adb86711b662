#include "roles/ps/core/gradient_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "math/model.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

std::optional<std::string> fault_in(const Values& gradient, float max_norm = 0) {
  RunConfig config = sgd_config(1);
  config.max_gradient_norm = max_norm;
  return GradientCheck(config, {.begin = 0, .end = gradient.size()}).fault_in(gradient);
}

TEST(GradientCheck, FindsNothingBadInNumbers) {
  EXPECT_EQ(fault_in({}), std::nullopt);
  EXPECT_EQ(fault_in({0, -1, 1e-45F}), std::nullopt);
  EXPECT_EQ(fault_in(Values(1000, kLargest)), std::nullopt) << "squares of floats fit into double";
}

TEST(GradientCheck, FindsTheOneValueThatIsNoNumberWhereverItIs) {
  constexpr std::size_t kSize = 67;  // not a multiple of a vector register's size
  for (std::size_t at = 0; at < kSize; ++at) {
    for (const float value : {kNone, kInfinity, -kInfinity}) {
      Values gradient(kSize, 1);
      gradient[at] = value;
      EXPECT_THAT(fault_in(gradient), Optional(HasSubstr("non-finite values, 1 of 67"))) << at;
    }
  }
  EXPECT_THAT(fault_in({kInfinity, -kInfinity}), Optional(HasSubstr("2 of 2")))
      << "though they may come to 0";
}

TEST(GradientCheck, FindsWhatIsLongerThanTheRunAllowsButForRounding) {
  EXPECT_EQ(fault_in({3, -4}, 5), std::nullopt);
  EXPECT_EQ(fault_in({3.02F, -4.02F}, 5), std::nullopt);
  EXPECT_THAT(fault_in({3.1F, -4.1F}, 5),
              Optional(HasSubstr("has a norm of 5.14004 here, --max_gradient_norm is 5")));
}

// Of a ps whose range begins behind the first variable.
TEST(GradientCheck, NamesTheVariableOfTheFirstValueThatIsNoNumber) {
  RunConfig config = sgd_config(1);
  config.model.variables = {{.name = "w", .shape = {5}}, {.name = "b", .shape = {20}}};
  const GradientCheck whole(config, {.begin = 0, .end = 48});
  Values gradient(48);
  gradient[40] = kNone;
  gradient[16] = kInfinity;
  EXPECT_THAT(whole.fault_in(gradient), Optional(testing::EndsWith("; the first is in b")));
  gradient[4] = kNone;
  EXPECT_THAT(whole.fault_in(gradient), Optional(testing::EndsWith("; the first is in w")));
  const GradientCheck second(config, {.begin = 16, .end = 48});
  EXPECT_THAT(second.fault_in(Values(32, kNone)),
              Optional(testing::EndsWith("; the first is in b")));
}

// In blocks of 16 numbers with one exponent and 4 bits each, rounding may lengthen a vector by
// half.
TEST(GradientCheck, LetsPassWhatRoundingToFewBitsAdds) {
  RunConfig config = sgd_config(1);
  config.wire_dtype = WireDtype::kInt4;
  config.max_gradient_norm = 5;
  const GradientCheck check(config, {.begin = 0, .end = 2});
  EXPECT_EQ(check.fault_in(Values{3.8F, -5.1F}), std::nullopt);
  EXPECT_NE(check.fault_in(Values{4.0F, -5.3F}), std::nullopt);
}

// A running mean has no gradient: the statistics in its position may have any size.
TEST(GradientCheck, RunningStatisticsAreNoPartOfTheNormButMustBeNumbers) {
  RunConfig config = sgd_config(1);
  config.model = {.input = {.channels = 1},
                  .classes = 2,
                  .layers = {{.type = "batch_norm", .name = {}, .fields = {}},
                             {.type = "dense", .name = {}, .fields = {{"units", 2.0}}}}};
  config.max_gradient_norm = 1;
  const math::ParameterLayout layout = math::layout_of(config.model);
  const math::Range whole{.begin = 0, .end = layout.size()};
  const std::vector<math::RunningRange> running = layout.running(whole);
  ASSERT_FALSE(running.empty());
  Values gradient(layout.size());
  gradient[running.front().range.begin] = 100;
  const GradientCheck check(config, whole);
  EXPECT_EQ(check.fault_in(gradient), std::nullopt);
  gradient.back() = 100;
  EXPECT_THAT(check.fault_in(gradient), Optional(HasSubstr("has a norm of 100 here")));
  gradient.back() = 0;
  gradient[running.front().range.begin] = kNone;
  EXPECT_THAT(check.fault_in(gradient), Optional(HasSubstr("non-finite values, 1 of")));

  // As a ps checks it whose range begins between the statistics.
  const std::size_t begin = running.front().range.end;
  const GradientCheck second(config, {.begin = begin, .end = whole.end});
  const std::vector<math::RunningRange> behind = layout.running({.begin = begin, .end = whole.end});
  ASSERT_FALSE(behind.empty());
  Values part(whole.end - begin);
  part[behind.front().range.begin] = 100;
  EXPECT_EQ(second.fault_in(part), std::nullopt);
  part.back() = 100;
  EXPECT_THAT(second.fault_in(part), Optional(HasSubstr("has a norm of 100 here")));
}

}  // namespace
}  // namespace disttf::roles
