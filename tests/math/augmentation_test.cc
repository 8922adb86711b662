#include "math/augmentation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "math/model.h"
#include "math/random.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

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

using testing::ElementsAre;

std::vector<ImageShift> shifts_by(std::size_t most) {
  std::vector<ImageShift> all;
  for_each_shift(most, [&](ImageShift by) { all.push_back(by); });
  return all;
}

Bytes shifted(const Bytes& image, const Shape& shape, ImageShift by) {
  Bytes out(shape.size(), 99);
  shift_image(image.data(), shape, by, out.data(),
              [](const std::uint8_t* from, std::uint8_t* to, std::size_t count) {
                std::copy_n(from, count, to);
              });
  return out;
}

TEST(TestShifts, OfOnePixelAreNoneAndTheFourNeighbours) {
  EXPECT_THAT(shifts_by(1), ElementsAre(ImageShift{0, -1}, ImageShift{-1, 0}, ImageShift{0, 0},
                                        ImageShift{1, 0}, ImageShift{0, 1}));
}

TEST(TestShifts, AreAsManyAsIsSaid) {
  EXPECT_THAT(shifts_by(0), ElementsAre(ImageShift{}));
  for (std::size_t most = 0; most <= kMostTestShift; ++most) {
    EXPECT_EQ(shifts_by(most).size(), count_of_shifts(most)) << most;
  }
  EXPECT_EQ(count_of_shifts(2), 13U);
}

// Two lines of three pixels of two channels.
constexpr Shape kSmall{.height = 2, .width = 3, .channels = 2};
const Bytes kImage = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

TEST(ShiftImage, MovesPixelsAndFillsWithBlack) {
  EXPECT_EQ(shifted(kImage, kSmall, {}), kImage);
  EXPECT_THAT(shifted(kImage, kSmall, {.right = 1}),
              ElementsAre(0, 0, 1, 2, 3, 4, 0, 0, 7, 8, 9, 10));
  EXPECT_THAT(shifted(kImage, kSmall, {.right = -2}),
              ElementsAre(5, 6, 0, 0, 0, 0, 11, 12, 0, 0, 0, 0));
  EXPECT_THAT(shifted(kImage, kSmall, {.down = 1}),
              ElementsAre(0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(shifted(kImage, kSmall, {.right = -1, .down = -1}),
              ElementsAre(9, 10, 11, 12, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(ShiftImage, ByMoreThanItsSizeIsBlack) {
  for (const ImageShift by : {ImageShift{3, 0}, ImageShift{-7, 1}, ImageShift{0, 2}}) {
    EXPECT_THAT(shifted(kImage, kSmall, by), Each(0));
  }
}

// ---- The effect on a model ----

class EvaluateShifts : public IsaTest {
 protected:
  static constexpr Shape kShape{.height = 5, .width = 6, .channels = 2};
  // Not linear, so the mean of the outputs differs from the output for the mean. The first layer
  // takes floats if `first` is batch_norm, otherwise pixels.
  static ModelSpec spec(const char* first) {
    std::vector<LayerSpec> layers;
    if (first == std::string("batch_norm")) {
      layers.push_back({.type = first, .name = {}, .fields = {}});
    }
    layers.push_back(
        {.type = "conv2d", .name = {}, .fields = {{"channels", 3.0}, {"kernel", 3.0}}});
    layers.push_back({.type = "relu", .name = {}, .fields = {}});
    layers.push_back({.type = "flatten", .name = {}, .fields = {}});
    layers.push_back({.type = "dense", .name = {}, .fields = {{"units", 1.0}}});
    return {.input = kShape, .classes = 1, .loss = LossKind::kMeanSquaredError, .layers = layers};
  }
  // Returns a model's output for one image, above the lower bound of all outputs.
  static double output(Model& model, const AlignedVector& parameters, const Bytes& image,
                       std::size_t shifts) {
    constexpr float kFarBelow = -100;
    const std::vector<float> target = {kFarBelow};
    return model.evaluate(parameters.span(), {.images = image, .targets = target}, shifts)
               .absolute_error +
           static_cast<double>(kFarBelow);
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, EvaluateShifts, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(EvaluateShifts, IsOfTheMeanOfTheOutputs) {
  for (const char* const first : {"conv2d", "batch_norm"}) {
    const ModelSpec model_spec = spec(first);
    const MadeUpImages images(1, kShape.size(), 1);
    const ParameterLayout layout = layout_of(model_spec);
    AlignedVector parameters = made_up_parameters(layout, 1.0F);
    for (const Variable& variable : layout.variables()) {
      if (variable.name.ends_with("variance")) {
        std::ranges::fill(parameters.span().subspan(variable.offset, variable.size), 0.5F);
      }
    }
    Model model(model_spec, 3, isa());
    for (const std::size_t most : {1U, 2U}) {
      double sum = 0;
      for (const ImageShift by : shifts_by(most)) {
        sum += output(model, parameters, shifted(images.images, kShape, by), 0);
      }
      const double mean = sum / static_cast<double>(count_of_shifts(most));
      EXPECT_NEAR(output(model, parameters, images.images, most), mean, 1e-4) << first;
      EXPECT_GT(std::abs(output(model, parameters, images.images, 0) - mean), 1e-3) << first;
    }
  }
}

TEST_P(EvaluateShifts, DoesNotDependOnTheNumberOfThreads) {
  const ModelSpec cnn{.kind = ModelKind::kCnn};
  const MadeUpImages images(21, cnn.input.size(), cnn.classes);
  const AlignedVector parameters = made_up_parameters(layout_of(cnn), 0.1F);
  const Evaluation one = Model(cnn, 8, isa()).evaluate(parameters.span(), images.set(), 1);
  Model model(cnn, 8, isa(), ComputeDtype::kF32, 3);
  const Evaluation shared = model.evaluate(parameters.span(), images.set(), 1);
  EXPECT_EQ(shared.loss, one.loss);
  EXPECT_EQ(shared.confusion, one.confusion);
}

TEST(EvaluateShiftsOnAnyVectors, IsBitIdentical) {
  const ModelSpec cnn{.kind = ModelKind::kCnn};
  const MadeUpImages images(5, cnn.input.size(), cnn.classes);
  const AlignedVector parameters = made_up_parameters(layout_of(cnn), 0.1F);
  std::vector<double> losses;
  for (const Isa isa : supported_isas()) {
    if (isa != Isa::kGeneric) {
      losses.push_back(Model(cnn, 4, isa).evaluate(parameters.span(), images.set(), 1).loss);
    }
  }
  if (losses.size() < 2) {
    GTEST_SKIP() << "this machine has not both AVX2 and AVX-512";
  }
  EXPECT_THAT(losses, Each(losses.front()));
}

// By hand: the output of class 0 is always 0. The output of class 1 is -0.5 for the original image,
// 1 for the image shifted to the side, and 0 for an empty image: 2/5 - 0.5/5 in the mean.
TEST(EvaluateShiftsByHand, JudgesByTheMean) {
  const ModelSpec spec{.kind = ModelKind::kSoftmax,
                       .input = {.height = 1, .width = 3, .channels = 1},
                       .hidden = {},
                       .classes = 2};
  AlignedVector parameters(layout_of(spec).size());
  parameters.data()[1] = 1;  // [3, 2]
  parameters.data()[3] = -0.5F;
  parameters.data()[5] = 1;
  const Bytes image = {0, 255, 0};
  const Bytes label = {1};
  Model model(spec, 1, Isa::kGeneric);
  const ImageSet set{.images = image, .labels = label};
  EXPECT_EQ(model.evaluate(parameters.span(), set).correct, 0U);
  const Evaluation by_mean = model.evaluate(parameters.span(), set, 1);
  EXPECT_EQ(by_mean.correct, 1U);
  EXPECT_THAT(by_mean.confusion, ElementsAreArray({0, 0, 0, 1}));
  EXPECT_NEAR(by_mean.loss, std::log(1 + std::exp(-0.3)), 1e-6);
}

}  // namespace
}  // namespace disttf::math
