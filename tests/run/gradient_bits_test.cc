// Which element of which variable differs, is not finite, or lies where nothing may be written.
#include "run/program/gradient_bits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace disttf::roles {
namespace {

using ::testing::Optional;

// w at 0 to 2, b at 16 to 18; 32 floats.
math::ParameterLayout two_variables() {
  math::ParameterLayout layout;
  layout.add("w", {3});
  layout.add("b", {1, 3});
  return layout;
}

TEST(GradientBits, NamesTheFirstElementThatDiffers) {
  const math::ParameterLayout layout = two_variables();
  const std::vector<float> first(layout.size(), 0.123F);
  std::vector<float> second = first;
  EXPECT_EQ(bit_difference(layout, first, second), std::nullopt);
  second[18] = 7;
  second[17] = 0.124F;
  EXPECT_THAT(bit_difference(layout, first, second),
              Optional(std::string("variable 2 of 2, b, element 1: 0.123 and 0.124")));
}

TEST(GradientBits, ComparesBitsAndNotNumbers) {
  const math::ParameterLayout layout = two_variables();
  std::vector<float> first(layout.size());
  std::vector<float> second = first;
  first[2] = second[2] = std::nanf("");
  EXPECT_EQ(bit_difference(layout, first, second), std::nullopt);
  second[1] = -0.0F;
  EXPECT_THAT(bit_difference(layout, first, second),
              Optional(std::string("variable 1 of 2, w, element 1: 0 and -0")));
}

TEST(GradientBits, ShowsNeighbouringFloatsAsDifferentTexts) {
  const math::ParameterLayout layout = two_variables();
  std::vector<float> first(layout.size(), 1);
  std::vector<float> second = first;
  second[0] = std::nextafter(1.0F, 2.0F);
  EXPECT_THAT(bit_difference(layout, first, second),
              Optional(std::string("variable 1 of 2, w, element 0: 1 and 1.0000001")));
}

TEST(GradientBits, DoesNotCompareThePadding) {
  const math::ParameterLayout layout = two_variables();
  const std::vector<float> first(layout.size());
  std::vector<float> second = first;
  second[3] = 1;
  EXPECT_EQ(bit_difference(layout, first, second), std::nullopt);
}

TEST(GradientBits, NamesWhatIsNotFinite) {
  const math::ParameterLayout layout = two_variables();
  std::vector<float> values(layout.size());
  values[3] = std::nanf("");  // padding
  EXPECT_EQ(not_finite(layout, values), std::nullopt);
  values[16] = -INFINITY;
  EXPECT_THAT(not_finite(layout, values),
              Optional(std::string("variable 2 of 2, b, element 0: -inf")));
}

TEST(GradientBits, NamesTheVariableBeforeWrittenPadding) {
  const math::ParameterLayout layout = two_variables();
  std::vector<float> values(layout.size());
  values[0] = values[18] = 1;
  EXPECT_EQ(written_padding(layout, values), std::nullopt);
  values[31] = 2;
  EXPECT_THAT(written_padding(layout, values),
              Optional(std::string("float 13 behind variable 2 of 2, b: 2")));
  values[3] = 0.5;
  EXPECT_THAT(written_padding(layout, values),
              Optional(std::string("float 1 behind variable 1 of 2, w: 0.5")));
}

}  // namespace
}  // namespace disttf::roles
