#include "math/augmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "math/random.h"

namespace disttf::math {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAreArray;
using testing::Ge;
using testing::Gt;
using testing::Le;
using testing::Lt;
using testing::Not;
using Bytes = std::vector<std::uint8_t>;

constexpr Shape kSquare{.height = 20, .width = 20, .channels = 1};

Bytes changed(const Augmentation& augmentation, const Shape& shape, const Bytes& image,
              std::uint64_t place, std::uint64_t step = 0, std::uint64_t seed = 7) {
  Augmenter augmenter(augmentation, shape, seed);
  Bytes out(shape.size(), 99);
  augmenter.apply(image, step, place, out);
  return out;
}

// A white square of 3x3 pixels around a position.
Bytes square_at(std::size_t x, std::size_t y, const Shape& shape = kSquare) {
  Bytes image(shape.size());
  for (std::size_t row = y - 1; row <= y + 1; ++row) {
    std::fill_n(image.begin() + static_cast<std::ptrdiff_t>(row * shape.width + x - 1), 3, 255);
  }
  return image;
}

Bytes noise(const Shape& shape) {
  Bytes image(shape.size());
  for (std::size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<std::uint8_t>(random_bits(1, 1, 1, i));
  }
  return image;
}

struct Point {
  double x = 0;
  double y = 0;
};

// Measured from the image's middle.
Point centre_of_mass(const Bytes& image, const Shape& shape = kSquare) {
  double sum = 0;
  Point weighted;
  for (std::size_t i = 0; i < image.size(); ++i) {
    sum += image[i];
    weighted.x += image[i] * (static_cast<double>(i % shape.width) + 0.5);
    weighted.y += image[i] * (static_cast<double>(i / shape.width) + 0.5);
  }
  return {.x = weighted.x / sum - static_cast<double>(shape.width) / 2,
          .y = weighted.y / sum - static_cast<double>(shape.height) / 2};
}

double mass(const Bytes& image) {
  double sum = 0;
  for (const std::uint8_t pixel : image) {
    sum += pixel;
  }
  return sum;
}

// Applies `measure` to the augmented copies of one image, at many positions.
template <typename Measure>
std::vector<double> spread(const Augmentation& augmentation, const Bytes& image, Measure measure) {
  std::vector<double> values;
  for (std::uint64_t place = 0; place < 400; ++place) {
    values.push_back(measure(changed(augmentation, kSquare, image, place)));
  }
  return values;
}

double least(const std::vector<double>& values) { return *std::ranges::min_element(values); }
double most(const std::vector<double>& values) { return *std::ranges::max_element(values); }

TEST(Augmentation, OfNothingLeavesTheImage) {
  const Shape shape{.height = 5, .width = 8, .channels = 3};
  EXPECT_FALSE(Augmentation{}.any());
  EXPECT_EQ(changed({}, shape, noise(shape), 3), noise(shape));
}

TEST(Augmentation, ShiftsByAtMostItsShareOfWidthAndHeight) {
  const Bytes image = square_at(9, 9);
  const Point middle = centre_of_mass(image);
  for (const bool down : {false, true}) {
    const auto moves = spread({.shift = 0.2F}, image, [&](const Bytes& out) {
      const Point now = centre_of_mass(out);
      return down ? now.y - middle.y : now.x - middle.x;
    });
    EXPECT_THAT(moves, Each(AllOf(Gt(-4.01), Lt(4.01))));
    EXPECT_LT(least(moves), -3.8);
    EXPECT_GT(most(moves), 3.8);
  }
}

TEST(Augmentation, OfAFractionOfAPixelIsBetweenPixels) {
  const Bytes image = square_at(9, 9);
  const auto total = spread({.shift = 0.2F}, image, mass);
  EXPECT_THAT(total, Each(AllOf(Gt(9 * 255 - 12.0), Lt(9 * 255 + 12.0))));
}

TEST(Augmentation, TurnsByAtMostItsDegreesAroundTheMiddle) {
  const Bytes image = square_at(15, 9);  // 6 to the right of the middle, vertically near 0
  const double start = std::atan2(centre_of_mass(image).y, centre_of_mass(image).x);
  const auto angles = spread({.rotate = 30}, image, [&](const Bytes& out) {
    const Point now = centre_of_mass(out);
    EXPECT_NEAR(std::hypot(now.x, now.y), 5.5, 0.1);
    return (std::atan2(now.y, now.x) - start) * 180 / std::numbers::pi;
  });
  EXPECT_THAT(angles, Each(AllOf(Gt(-30.5), Lt(30.5))));
  EXPECT_LT(least(angles), -29);
  EXPECT_GT(most(angles), 29);
}

TEST(Augmentation, OfHalfATurnTurnsAllTheWay) {
  const Bytes image = square_at(15, 9);
  const auto sides =
      spread({.rotate = 180}, image, [](const Bytes& out) { return centre_of_mass(out).x; });
  EXPECT_LT(least(sides), -5.3);
  EXPECT_GT(most(sides), 5.3);
}

TEST(Augmentation, ScalesInBothDirectionsByAtMostItsShare) {
  const Bytes image = square_at(15, 15);
  const double start = centre_of_mass(image).x;
  const auto factors = spread({.scale = 0.2F}, image, [&](const Bytes& out) {
    const Point now = centre_of_mass(out);
    EXPECT_NEAR(now.x, now.y, 0.02);
    return start / now.x;  // source position divided by position
  });
  EXPECT_THAT(factors, Each(AllOf(Gt(0.79), Lt(1.21))));
  EXPECT_LT(least(factors), 0.81);
  EXPECT_GT(most(factors), 1.19);
}

TEST(Augmentation, ShearsRowsByTheirDistanceFromTheMiddle) {
  const Bytes above = square_at(10, 4);
  const Bytes below = square_at(10, 15);
  for (std::uint64_t place = 0; place < 50; ++place) {
    const Augmentation shear{.shear = 0.5F};
    const Point up = centre_of_mass(changed(shear, kSquare, above, place));
    const Point down = centre_of_mass(changed(shear, kSquare, below, place));
    EXPECT_NEAR(up.y, centre_of_mass(above).y, 0.01);
    EXPECT_NEAR(up.x - 0.5, -(down.x - 0.5), 0.2) << "the same slant on both sides";
  }
  const auto moves =
      spread({.shear = 0.5F}, below, [](const Bytes& out) { return centre_of_mass(out).x - 0.5; });
  EXPECT_THAT(moves, Each(AllOf(Ge(-2.8), Le(2.8))));
  EXPECT_LT(least(moves), -2.5);
  EXPECT_GT(most(moves), 2.5);
}

TEST(Augmentation, BendsEachPartOfAnImageByItself) {
  const auto move = [](const Bytes& image, std::uint64_t place) {
    const Point now = centre_of_mass(changed({.elastic = 0.3F}, kSquare, image, place));
    const Point before = centre_of_mass(image);
    return Point{.x = now.x - before.x, .y = now.y - before.y};
  };
  bool differs = false;
  for (std::uint64_t place = 0; place < 100; ++place) {
    const Point here = move(square_at(5, 5), place);
    const Point there = move(square_at(14, 14), place);
    for (const double moved : {here.x, here.y, there.x, there.y}) {
      EXPECT_LT(std::abs(moved), 2.5);  // 0.3 of a cell of 5 pixels, plus its deformation
    }
    differs |= std::abs(here.x - there.x) > 0.5;
  }
  EXPECT_TRUE(differs);
}

TEST(Augmentation, BlackensASquareOfItsShareAndNoMore) {
  const Bytes white(kSquare.size(), 255);
  const auto blackened = [](const Bytes& out) {
    return static_cast<double>(std::ranges::count(out, 0));
  };
  EXPECT_THAT(spread({.cutout = 0.25F}, white, blackened), Each(25.0));
  const auto first_column = spread({.cutout = 0.25F}, white, [](const Bytes& out) {
    return static_cast<double>(std::ranges::find(out, 0) - out.begin() -
                               (std::ranges::find(out, 0) - out.begin()) / 20 * 20);
  });
  EXPECT_EQ(least(first_column), 0);
  EXPECT_EQ(most(first_column), 15);
}

TEST(Augmentation, MirrorsAboutEverySecondImage) {
  const Shape shape{.height = 3, .width = 4, .channels = 3};
  const Bytes image = noise(shape);
  Bytes mirrored;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 4; column-- > 0;) {
      const auto pixel = image.begin() + static_cast<std::ptrdiff_t>((row * 4 + column) * 3);
      mirrored.insert(mirrored.end(), pixel, pixel + 3);
    }
  }
  int count = 0;
  for (std::uint64_t place = 0; place < 400; ++place) {
    const Bytes out = changed({.flip = true}, shape, image, place);
    EXPECT_TRUE(out == image || out == mirrored);
    count += out == mirrored ? 1 : 0;
  }
  EXPECT_GT(count, 150);
  EXPECT_LT(count, 250);
}

constexpr Augmentation kAll{.shift = 0.1F,
                            .rotate = 20,
                            .scale = 0.1F,
                            .shear = 0.1F,
                            .elastic = 0.2F,
                            .cutout = 0.3F,
                            .flip = true};

TEST(Augmentation, IsAFunctionOfSeedStepAndPlace) {
  const Bytes image = noise(kSquare);
  const Bytes out = changed(kAll, kSquare, image, 5, 3);
  Augmenter again(kAll, kSquare, 7);
  Bytes second(kSquare.size());
  again.apply(noise(kSquare), 9, 1, second);  // earlier work does not count
  again.apply(image, 3, 5, second);
  EXPECT_EQ(second, out);
  EXPECT_NE(changed(kAll, kSquare, image, 6, 3), out);
  EXPECT_NE(changed(kAll, kSquare, image, 5, 4), out);
  EXPECT_NE(changed(kAll, kSquare, image, 5, 3, 8), out);
}

// Only integers, so the result is the same on every machine: the values from when it was written.
TEST(Augmentation, HasTheBytesThatItAlwaysHad) {
  const Shape shape{.height = 4, .width = 5, .channels = 1};
  const Bytes expected{134, 193, 0,   166, 34, 143, 131, 151, 170, 81,
                       67,  129, 198, 199, 38, 44,  130, 157, 141, 11};
  EXPECT_THAT(changed(kAll, shape, noise(shape), 5, 3), ElementsAreArray(expected));
}

TEST(Augmentation, OfOnePixelWorks) {
  const Shape shape{.height = 1, .width = 1, .channels = 1};
  EXPECT_THAT(changed(kAll, shape, {200}, 5, 3), testing::SizeIs(1));
}

TEST(AugmentedBatch, HasItsRowsAtTheirPlaces) {
  const Bytes first = square_at(5, 5);
  Bytes images = first;
  const Bytes second = square_at(12, 7);
  images.insert(images.end(), second.begin(), second.end());
  const Bytes labels{4, 9};
  const Augmentation shift{.shift = 0.2F};
  AugmentedBatch batch(shift, kSquare, 7, 3);
  const std::vector<std::uint32_t> rows{1, 0, 1};
  const ImageSet made = batch.make({.images = images, .labels = labels}, rows, 2, 10);
  EXPECT_THAT(made.labels, ElementsAreArray({9, 4, 9}));
  const auto image = [&](std::size_t i) {
    const auto bytes = made.images.subspan(i * kSquare.size(), kSquare.size());
    return Bytes(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(image(0), changed(shift, kSquare, second, 10, 2));
  EXPECT_EQ(image(1), changed(shift, kSquare, first, 11, 2));
  EXPECT_EQ(image(2), changed(shift, kSquare, second, 12, 2));
  EXPECT_THAT(image(2), Not(ElementsAreArray(image(0))));
  EXPECT_THAT(batch.rows(), ElementsAreArray({0, 1, 2}));
}

}  // namespace
}  // namespace disttf::math
