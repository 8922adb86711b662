// Tests every layer in a small model. Its gradient must match a second implementation in double,
// whose own gradient is checked by central differences. The bits must be the same for any number of
// threads and on AVX2 and AVX-512.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "math/aligned.h"
#include "math/layers/registry.h"
#include "math/model.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"
#include "tests/math/reference_model.h"
#include "tests/support/thrown.h"

namespace disttf::math {
namespace {

LayerSpec layer(std::string type, std::map<std::string, LayerValue, std::less<>> fields = {}) {
  return {.type = std::move(type), .name = {}, .fields = std::move(fields)};
}

struct Case {
  const char* name;
  ModelSpec spec;
};
std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

ModelSpec model_of(const Shape& input, std::vector<LayerSpec> layers) {
  layers.push_back(layer("dense", {{"units", 3.0}}));
  return {.input = input, .classes = 3, .layers = std::move(layers)};
}

ModelSpec ending_in(ModelSpec spec, const std::vector<LayerSpec>& layers) {
  spec.layers.insert(spec.layers.end(), layers.begin(), layers.end());
  return spec;
}

ModelSpec smoothed(ModelSpec spec, float label_smoothing) {
  spec.label_smoothing = label_smoothing;
  return spec;
}

ModelSpec with_loss(ModelSpec spec, LossKind loss) {
  spec.loss = loss;
  return spec;
}

// Rows of 11 numbers, with numeric labels.
ModelSpec of_numbers(std::vector<LayerSpec> layers) {
  layers.push_back(layer("dense", {{"units", 1.0}}));
  return {.input = {.channels = 11},
          .classes = 1,
          .loss = LossKind::kMeanSquaredError,
          .numbers = true,
          .layers = std::move(layers)};
}

// Odd sizes throughout: partial strips, rows that no tile divides, and windows that omit a
// position.
std::vector<Case> cases() {
  const Shape image{.height = 7, .width = 9, .channels = 1};
  const Shape colours{.height = 6, .width = 5, .channels = 3};
  const LayerSpec small = layer("conv2d", {{"channels", 5.0}, {"kernel", 3.0}});
  return {
      {"Convolution", model_of(image, {small})},
      {"ConvolutionOfColours", model_of(colours, {small})},
      {"ConvolutionOfOnePosition",
       model_of(colours, {layer("conv2d", {{"channels", 4.0}, {"kernel", 1.0}})})},
      {"ConvolutionWithoutPadding",
       model_of(image, {layer("conv2d", {{"channels", 2.0}, {"kernel", 4.0}, {"padding", "valid"}}),
                        small})},
      {"ConvolutionOfAnEvenKernel",
       model_of(image, {small, layer("conv2d", {{"channels", 2.0}, {"kernel", 4.0}})})},
      {"ConvolutionWithStride",
       model_of(image, {layer("conv2d", {{"channels", 3.0}, {"kernel", 3.0}, {"stride", 2.0}}),
                        layer("conv2d", {{"channels", 3.0}, {"kernel", 2.0}, {"stride", 3.0}})})},
      {"ConvolutionWithStrideWithoutPadding",
       model_of(image, {small, layer("conv2d", {{"channels", 3.0},
                                                {"kernel", 2.0},
                                                {"stride", 2.0},
                                                {"padding", "valid"}})})},
      {"WideConvolutions",
       model_of(image, {layer("conv2d", {{"channels", 16.0}, {"kernel", 3.0}}), layer("relu"),
                        layer("conv2d", {{"channels", 35.0}, {"kernel", 3.0}})})},
      {"MaxPooling", model_of(image, {small, layer("max_pool", {{"size", 2.0}})})},
      {"MaxPoolingOfOverlappingWindows",
       model_of(image, {small, layer("max_pool", {{"size", 3.0}, {"stride", 2.0}})})},
      {"AveragePooling", model_of(image, {small, layer("average_pool", {{"size", 2.0}})})},
      {"AveragePoolingOfOverlappingWindows",
       model_of(image, {small, layer("average_pool", {{"size", 3.0}, {"stride", 1.0}})})},
      {"PoolingFirst", model_of(image, {layer("max_pool", {{"size", 2.0}}), small})},
      {"Relu",
       model_of(image, {layer("flatten"), layer("dense", {{"units", 7.0}}), layer("relu")})},
      {"Tanh",
       model_of(image, {layer("flatten"), layer("dense", {{"units", 7.0}}), layer("tanh")})},
      {"TanhFirst", model_of(image, {layer("tanh"), small})},
      {"Sigmoid",
       model_of(image, {layer("flatten"), layer("dense", {{"units", 7.0}}), layer("sigmoid")})},
      {"SigmoidBehindTanh", model_of(image, {small, layer("tanh"), layer("sigmoid")})},
      {"SigmoidBehindRelu", model_of(image, {small, layer("relu"), layer("sigmoid")})},
      {"DropoutBehindTanh", model_of(image, {small, layer("tanh"), layer("flatten"),
                                             layer("dropout", {{"rate", 0.3}})})},
      {"ReluLast", ending_in(model_of(image, {small}), {layer("relu")})},
      {"TanhLast", ending_in(model_of(image, {small}), {layer("tanh")})},
      {"DropoutBehindTanhLast",
       ending_in(model_of(image, {small}), {layer("tanh"), layer("dropout", {{"rate", 0.3}})})},
      {"ReluFirst", model_of(image, {layer("relu"), small})},
      {"Dropout",
       model_of(image, {small, layer("relu"), layer("dropout", {{"rate", 0.3}}), layer("flatten"),
                        layer("dense", {{"units", 7.0}}), layer("dropout", {{"rate", 0.5}})})},
      {"BatchNorm", model_of(image, {small, layer("batch_norm"), layer("relu")})},
      {"BatchNormOfManyChannels",
       model_of(colours, {layer("conv2d", {{"channels", 35.0}, {"kernel", 3.0}}),
                          layer("batch_norm", {{"epsilon", 0.01}, {"momentum", 0.5}}),
                          layer("max_pool", {{"size", 2.0}})})},
      {"BatchNormOfNumbers", model_of(image, {layer("flatten"), layer("dense", {{"units", 19.0}}),
                                              layer("batch_norm"), layer("relu")})},
      {"BatchNormFirst", model_of(colours, {layer("batch_norm"), small})},
      {"BatchNormLast", ending_in(model_of(image, {small}), {layer("batch_norm")})},
      {"BatchNormTwice",
       model_of(image, {small, layer("batch_norm"), layer("batch_norm"), layer("tanh"),
                        layer("max_pool", {{"size", 2.0}}), layer("batch_norm"), small})},
      {"BatchNormFirstAndAgain", model_of(colours, {layer("batch_norm"), layer("batch_norm")})},
      {"BatchNormBetweenDropouts",
       model_of(image, {small, layer("tanh"), layer("dropout", {{"rate", 0.3}}),
                        layer("batch_norm"), layer("dropout", {{"rate", 0.3}})})},
      {"LabelSmoothing", smoothed(model_of(image, {small, layer("relu")}), 0.3F)},
      {"SigmoidCrossEntropy",
       with_loss(model_of(image, {small, layer("relu")}), LossKind::kSigmoidCrossEntropy)},
      {"SmoothedSigmoidCrossEntropy",
       smoothed(with_loss(model_of(image, {small}), LossKind::kSigmoidCrossEntropy), 0.3F)},
      {"SquaredError", of_numbers({layer("dense", {{"units", 5.0}}), layer("tanh")})},
      {"SquaredErrorOfALineAlone", of_numbers({})},
      {"DropoutFirst", model_of(image, {layer("dropout", {{"rate", 0.2}})})},
  };
}

constexpr Model::Place kPlace{.seed = 3, .step = 17, .first = 40};
constexpr std::size_t kRows = 6;

// Parameters of a size at which few outputs are 0 and none is extreme.
AlignedVector parameters_of(const ModelSpec& spec) {
  return made_up_parameters(layout_of(spec), 0.4F);
}

AlignedVector gradient_of(const ModelSpec& spec, Isa isa, std::size_t threads,
                          float* loss = nullptr, ComputeDtype dtype = ComputeDtype::kF32) {
  const MadeUpImages images(kRows + 2, spec.input.size(), spec.classes);
  Model model(spec, kRows, isa, dtype, threads);
  // Not zero: the model must write every element.
  AlignedVector gradient = made_up_numbers(model.layout().size(), 3);
  model.load(images.set_for(spec), row_numbers(1, kRows), kPlace);
  const float found = model.gradient_of_batch(parameters_of(spec).span(), gradient.span());
  if (loss != nullptr) {
    *loss = found;
  }
  return gradient;
}

class Layers : public testing::TestWithParam<Case> {
 protected:
  static const ModelSpec& spec() { return GetParam().spec; }
};
INSTANTIATE_TEST_SUITE_P(All, Layers, testing::ValuesIn(cases()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(Layers, TheReferenceAgreesWithCentralDifferences) {
  const MadeUpImages images(kRows + 2, spec().input.size(), spec().classes);
  const AlignedVector start = parameters_of(spec());
  const std::vector<double> parameters(start.span().begin(), start.span().end());
  const ReferenceModel reference(spec(), kPlace);
  const auto rows = row_numbers(1, kRows);
  const auto gradient = reference.gradient(parameters, images.set_for(spec()), rows);
  // A few parameters of each variable, far apart, because each takes two forward passes.
  const ParameterLayout layout = layout_of(spec());
  for (const Variable& variable : layout.variables()) {
    if (variable.momentum) {
      continue;  // a statistic of the batch, not a gradient
    }
    for (std::size_t i = 0; i < variable.size; i += variable.size / 15 + 1) {
      const std::size_t parameter = variable.offset + i;
      ASSERT_NEAR(gradient[parameter],
                  reference.difference(parameters, parameter, images.set_for(spec()), rows), 1e-7)
          << variable.name << ", parameter " << i;
    }
  }
}

TEST_P(Layers, TheGradientIsTheReferences) {
  const MadeUpImages images(kRows + 2, spec().input.size(), spec().classes);
  const AlignedVector start = parameters_of(spec());
  const std::vector<double> parameters(start.span().begin(), start.span().end());
  const ReferenceModel reference(spec(), kPlace);
  const auto rows = row_numbers(1, kRows);
  const std::vector<double> expected = reference.gradient(parameters, images.set_for(spec()), rows);
  const ParameterLayout layout = layout_of(spec());
  double largest = 0;
  for (const Range& range : layout.trained()) {
    for (std::size_t i = range.begin; i < range.end; ++i) {
      largest = std::max(largest, expected[i]);
    }
  }
  for (const Isa isa : supported_isas()) {
    float loss = 0;
    const AlignedVector gradient = gradient_of(spec(), isa, 1, &loss);
    EXPECT_NEAR(loss, reference.loss(parameters, images.set_for(spec()), rows), 1e-5);
    for (const Variable& variable : layout.variables()) {
      for (std::size_t i = variable.offset; i < variable.offset + variable.size; ++i) {
        const double size = variable.momentum ? std::max(1.0, expected[i]) : largest;
        ASSERT_NEAR(gradient.data()[i], expected[i], 1e-5 * size)
            << isa_name(isa) << ", " << variable.name << " from " << variable.offset << ", at "
            << i;
      }
    }
  }
}

TEST_P(Layers, TheBitsAreTheSameForAnyNumberOfThreads) {
  for (const Isa isa : supported_isas()) {
    for (const ComputeDtype dtype : {ComputeDtype::kF32, ComputeDtype::kBf16}) {
      if (!can_multiply(isa, dtype)) {
        continue;  // generic with bfloat16
      }
      const auto bits = [&](std::size_t threads) {
        return bits_of(gradient_of(spec(), isa, threads, nullptr, dtype).span());
      };
      const std::vector<std::uint32_t> one = bits(1);
      for (const std::size_t threads : {2U, 3U, 7U}) {
        EXPECT_EQ(bits(threads), one)
            << isa_name(isa) << ", " << compute_dtype_name(dtype) << ", " << threads << " threads";
      }
    }
  }
}

TEST_P(Layers, TheBitsOfAvx2AreThoseOfAvx512) {
  const auto isas = supported_isas();
  if (std::ranges::find(isas, Isa::kAvx512) == isas.end()) {
    GTEST_SKIP() << "this CPU has no AVX-512";
  }
  for (const ComputeDtype dtype : {ComputeDtype::kF32, ComputeDtype::kBf16}) {
    const auto bits = [&](Isa isa) {
      return bits_of(gradient_of(spec(), isa, 1, nullptr, dtype).span());
    };
    EXPECT_EQ(bits(Isa::kAvx2), bits(Isa::kAvx512)) << compute_dtype_name(dtype);
  }
}

TEST_P(Layers, APieceOfTheGradientIsFinalWhenItIsSaidToBe) {
  const MadeUpImages images(kRows + 2, spec().input.size(), spec().classes);
  const std::vector<std::uint32_t> whole =
      bits_of(gradient_of(spec(), supported_isas().front(), 1).span());
  Model model(spec(), kRows, supported_isas().front());
  AlignedVector gradient(model.layout().size());
  std::ranges::fill(gradient.span(), std::numeric_limits<float>::quiet_NaN());
  model.load(images.set_for(spec()), row_numbers(1, kRows), kPlace);
  model.gradient_of_batch(parameters_of(spec()).span(), gradient.span(),
                          [&](float, std::size_t ready) {
                            const auto final_ones = std::span(whole).first(ready);
                            EXPECT_EQ(bits_of(gradient.span().first(ready)),
                                      std::vector(final_ones.begin(), final_ones.end()));
                          });
  EXPECT_EQ(bits_of(gradient.span()), whole);
}

// The named networks, on images of half their usual size, because the reference is slow.
TEST(NamedModels, TheGradientsAreTheReferences) {
  for (const ModelKind kind : {ModelKind::kLenet, ModelKind::kCnn}) {
    const ModelSpec spec{.kind = kind, .input = {.height = 14, .width = 14}};
    const MadeUpImages images(2, spec.input.size(), spec.classes);
    Model model(spec, 2, supported_isas().front());
    AlignedVector start(model.layout().size());
    model.initialize(1, start.span());
    AlignedVector gradient(model.layout().size());
    const auto rows = row_numbers(0, 2);
    model.load(images.set_for(spec), rows, kPlace);
    model.gradient_of_batch(start.span(), gradient.span());
    const std::vector<double> parameters(start.span().begin(), start.span().end());
    const std::vector<double> expected =
        ReferenceModel(spec, kPlace).gradient(parameters, images.set_for(spec), rows);
    const double largest = *std::ranges::max_element(expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(gradient.data()[i], expected[i], 2e-5 * largest)
          << model_name(kind) << ", parameter " << i;
    }
  }
}

// ---- Dropout ----

TEST(Dropout, IsDrawnFromTheSeedTheStepAndTheRowsPlace) {
  const ModelSpec spec = model_of({.channels = 200}, {layer("dropout", {{"rate", 0.5}})});
  const MadeUpImages images(4, spec.input.size(), spec.classes);
  const AlignedVector parameters = parameters_of(spec);
  Model model(spec, 4, supported_isas().front());
  const auto gradient_at = [&](const Model::Place& place) {
    AlignedVector gradient(model.layout().size());
    model.load(images.set(), row_numbers(0, 4), place);
    model.gradient_of_batch(parameters.span(), gradient.span());
    return bits_of(gradient.span());
  };
  const auto first = gradient_at(kPlace);
  EXPECT_EQ(gradient_at(kPlace), first);
  EXPECT_NE(gradient_at({.seed = 4, .step = 17, .first = 40}), first);
  EXPECT_NE(gradient_at({.seed = 3, .step = 18, .first = 40}), first);
  EXPECT_NE(gradient_at({.seed = 3, .step = 17, .first = 44}), first);
}

TEST(Dropout, ChangesNothingWhenTheModelIsEvaluated) {
  const ModelSpec with = model_of({.channels = 20}, {layer("dropout", {{"rate", 0.5}})});
  const ModelSpec without = model_of({.channels = 20}, {});
  const MadeUpImages images(50, 20, 3);
  const AlignedVector parameters = parameters_of(with);
  EXPECT_EQ(
      Model(with, 7, supported_isas().front()).evaluate(parameters.span(), images.set()).loss,
      Model(without, 7, supported_isas().front()).evaluate(parameters.span(), images.set()).loss);
}

// ---- Refused models ----

std::string refusal_of(const ModelSpec& spec) {
  return sentence_of([&] { validate(spec); }, "");
}

TEST(LayerSpecs, AreRefusedWithLayerFieldAndValue) {
  const Shape image{.height = 7, .width = 9, .channels = 1};
  const auto refused = [&](LayerSpec each) {
    return refusal_of(model_of(image, {layer("relu"), std::move(each)}));
  };
  EXPECT_EQ(
      refused(layer("conv3d")),
      "layer 2 (conv3d): type: \"conv3d\" is not one of dense, conv2d, max_pool, average_pool, "
      "relu, tanh, sigmoid, batch_norm, dropout, flatten");
  EXPECT_EQ(refused(layer("dense", {{"units", 0.0}})),
            "layer 2 (dense): units: 0 is not a whole number from 1 to 65536");
  EXPECT_EQ(refused(layer("dense", {{"units", 1.5}})),
            "layer 2 (dense): units: 1.5 is not a whole number from 1 to 65536");
  EXPECT_EQ(refused(layer("dense", {{"units", "many"}})),
            "layer 2 (dense): units: \"many\" is not a whole number from 1 to 65536");
  EXPECT_EQ(refused(layer("dense")),
            "layer 2 (dense): units: is missing; it must be a whole number from 1 to 65536");
  EXPECT_EQ(refused(layer("relu", {{"units", 1.0}})),
            "layer 2 (relu): units: relu has no such field; its fields are none");
  EXPECT_EQ(refused(layer("batch_norm", {{"momentum", 1.0}})),
            "layer 2 (batch_norm): momentum: 1 is not a number from 0 to below 1");
  EXPECT_EQ(refused(layer("batch_norm", {{"epsilon", 0.0}})),
            "layer 2 (batch_norm): epsilon: 0 is not a number from 1e-09 to below 1");
  EXPECT_EQ(refused(layer("dropout", {{"rate", 1.0}})),
            "layer 2 (dropout): rate: 1 is not a number from 0 to below 1");
  EXPECT_EQ(refused(layer("conv2d", {{"channels", 2.0}, {"kernel", 3.0}, {"padding", "full"}})),
            "layer 2 (conv2d): padding: \"full\" is not one of \"same\", \"valid\"");
  EXPECT_EQ(refused(layer("conv2d", {{"channels", 2.0}, {"kernel", 8.0}, {"padding", "valid"}})),
            "layer 2 (conv2d): kernel: 8 is larger than the image, which is 7x9x1, and there is no "
            "padding");
  EXPECT_EQ(refused(layer("max_pool", {{"size", 8.0}})),
            "layer 2 (max_pool): size: 8 is larger than the image, which is 7x9x1");
}

TEST(LayerSpecs, HaveNamesThatVariablesCanBeCalledBy) {
  const auto named = [](const std::string& first, const std::string& second) {
    std::vector<LayerSpec> layers = {layer("dense", {{"units", 4.0}}),
                                     layer("dense", {{"units", 4.0}})};
    layers[0].name = first;
    layers[1].name = second;
    ModelSpec spec{.input = {.channels = 4}, .classes = 4, .layers = layers};
    try {
      validate(spec);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(named("a_1", "B"), "");
  EXPECT_EQ(named("a", "a"), "layer 2 (dense): name: \"a\" is another layer's already");
  EXPECT_EQ(named("dense2", ""), "layer 2 (dense): name: \"dense2\" is another layer's already");
  EXPECT_EQ(named("a b", ""),
            "layer 1 (dense): name: \"a b\" is not 1 to 32 of a-z, A-Z, 0-9 and _");
  EXPECT_EQ(named("", std::string(33, 'x')), "layer 2 (dense): name: \"" + std::string(32, 'x') +
                                                 "\" is not 1 to 32 of a-z, A-Z, 0-9 and _");
}

TEST(LayerSpecs, AreAtMostAsManyAsDropoutCanTellApart) {
  EXPECT_EQ(refusal_of(model_of({.channels = 4}, std::vector(62, layer("relu")))), "");
  EXPECT_EQ(refusal_of(model_of({.channels = 4}, std::vector(63, layer("relu")))),
            "number of layers: 64 is not allowed, it must be from 1 to 63");
}

TEST(LayerSpecs, MustEndWithANumberForEachClass) {
  ModelSpec spec = model_of({.channels = 4}, {});
  spec.classes = 4;
  EXPECT_EQ(refusal_of(spec), "layer 1 gives 3, and there are 4 classes");
}

TEST(LayerSpecs, VariablesAreNamedByTypeAndNumber) {
  const LayerSpec small = layer("conv2d", {{"channels", 5.0}, {"kernel", 3.0}});
  const ParameterLayout layout =
      layout_of(model_of({.height = 7, .width = 9, .channels = 1}, {small, small}));
  std::vector<std::string> names;
  for (const Variable& variable : layout.variables()) {
    names.push_back(variable.name + " " + shape_text(variable.shape));
  }
  EXPECT_THAT(names, testing::ElementsAre("conv2d1_w [3, 3, 1, 5]", "conv2d1_b [5]",
                                          "conv2d2_w [3, 3, 5, 5]", "conv2d2_b [5]",
                                          "dense1_w [315, 3]", "dense1_b [3]"));
}

}  // namespace
}  // namespace disttf::math
