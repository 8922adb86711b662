#include "math/test_shifts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "math/model.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using Bytes = std::vector<std::uint8_t>;

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
