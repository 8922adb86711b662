#include "data/digits_draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "data/digits_strokes.h"

namespace disttf::data {
namespace {

using Image = std::array<std::uint8_t, kDigitPixels>;

Image drawn(std::uint8_t label, std::uint64_t random_seed) {
  Image image;
  draw_digit(label, random_seed, image);
  return image;
}

// Calls `test` with many images of every label.
template <typename Test>
void for_many_images(Test test) {
  for (std::uint8_t label = 0; label < kDigitClasses; ++label) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(::testing::Message() << "label " << int{label} << ", seed " << seed);
      test(drawn(label, seed));
    }
  }
}

TEST(DigitStrokes, EveryDigitHasStylesThatStayInTheUnitSquare) {
  for (std::uint8_t label = 0; label < kDigitClasses; ++label) {
    EXPECT_GE(digit_styles(label).size(), 2U);
    for (const DigitStyle style : digit_styles(label)) {
      EXPECT_LE(style.size(), 16U) << "more than a drawing holds";
      EXPECT_EQ(style.front().kind, NodeKind::kStart);
      EXPECT_NE(style.back().kind, NodeKind::kStart);
      for (const StrokeNode& node : style) {
        EXPECT_TRUE(node.x >= 0 && node.x <= 1 && node.y >= 0 && node.y <= 1);
      }
    }
  }
}

TEST(DrawDigit, DrawsTheSameFromTheSameSeed) { EXPECT_EQ(drawn(5, 123), drawn(5, 123)); }

TEST(DrawDigit, NeverDrawsTwoAlike) {
  std::set<Image> images;
  for (std::uint64_t seed = 0; seed < 500; ++seed) images.insert(drawn(3, seed));
  EXPECT_EQ(images.size(), 500U);
}

TEST(DrawDigit, TheLabelDecidesTheShape) { EXPECT_NE(drawn(1, 7), drawn(8, 7)); }

TEST(DrawDigit, LeavesMostOfThePaperBlank) {
  for_many_images([](const Image& image) {
    const auto blank = std::count(image.begin(), image.end(), 0);
    EXPECT_GT(blank, 392);  // half of the pixels
    EXPECT_LT(blank, 760);
  });
}

TEST(DrawDigit, InksTheMiddleOfAStrokeDark) {
  for_many_images([](const Image& image) {
    EXPECT_GT(int{*std::max_element(image.begin(), image.end())}, 150);
  });
}

TEST(DrawDigit, HasGreyEdges) {
  for_many_images([](const Image& image) {
    EXPECT_GT(std::count_if(image.begin(), image.end(), [](int v) { return v > 0 && v < 128; }), 4);
  });
}

TEST(DrawDigit, PutsTheCentreOfMassNearTheMiddle) {
  for_many_images([](const Image& image) {
    double total = 0;
    double x = 0;
    double y = 0;
    for (std::size_t i = 0; i < kDigitPixels; ++i) {
      total += image[i];
      x += image[i] * (static_cast<double>(i % kDigitSide) + 0.5);
      y += image[i] * (static_cast<double>(i / kDigitSide) + 0.5);
    }
    EXPECT_NEAR(x / total, 14.0, 3.0);
    EXPECT_NEAR(y / total, 14.0, 3.0);
  });
}

}  // namespace
}  // namespace disttf::data
