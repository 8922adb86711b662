// Batch norm apart from the gradient, which layers_test.cc covers: its initial values, its
// behaviour in evaluation, its requirements.
#include "math/layers/batch_norm.h"

#include <gmock/gmock.h>

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/aligned.h"
#include "math/kernels_table.h"
#include "math/model.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"
#include "tests/math/reference_model.h"

namespace disttf::math {
namespace {

constexpr std::size_t kBatchRows = 6;

LayerSpec layer_of(std::string type, std::map<std::string, LayerValue, std::less<>> fields = {}) {
  return {.type = std::move(type), .name = {}, .fields = std::move(fields)};
}

ModelSpec ending_in_three(const Shape& input, std::vector<LayerSpec> layers) {
  layers.push_back(layer_of("dense", {{"units", 3.0}}));
  return {.input = input, .classes = 3, .layers = std::move(layers)};
}

AlignedVector made_up_for(const ModelSpec& spec) {
  return made_up_parameters(layout_of(spec), 0.4F);
}

// Odd numbers of channels, so that a model has pieces of all sizes.
ModelSpec with_batch_norm() {
  return ending_in_three(
      {.height = 6, .width = 5, .channels = 1},
      {layer_of("conv2d", {{"channels", 19.0}, {"kernel", 3.0}}),
       layer_of("batch_norm", {{"momentum", 0.75}}), layer_of("relu"), layer_of("flatten"),
       layer_of("dense", {{"units", 7.0}}), layer_of("batch_norm"), layer_of("relu")});
}

TEST(BatchNorm, BeginsWithWhatChangesNothingButMeanAndVariance) {
  const Model model(with_batch_norm(), 2, supported_isas().front());
  AlignedVector start(model.layout().size());
  model.initialize(1, start.span());
  std::size_t found = 0;
  for (const Variable& variable : model.layout().variables()) {
    if (variable.name.starts_with("batch_norm")) {
      const bool is_one = variable.name.ends_with("_gamma") || variable.name.ends_with("_variance");
      EXPECT_THAT(start.span().subspan(variable.offset, variable.size),
                  testing::Each(is_one ? 1.0F : 0.0F))
          << variable.name;
      EXPECT_FALSE(variable.decays) << variable.name;
      const bool is_running =
          variable.name.ends_with("_mean") || variable.name.ends_with("_variance");
      const float momentum = variable.name.starts_with("batch_norm1") ? 0.75F : 0.9F;
      EXPECT_EQ(variable.momentum, is_running ? std::optional(momentum) : std::nullopt);
      ++found;
    }
  }
  EXPECT_EQ(found, 8U);
}

TEST(BatchNorm, IsEvaluatedByTheRunningValues) {
  const ModelSpec spec = with_batch_norm();
  const MadeUpImages images(23, spec.input.size(), spec.classes);
  AlignedVector start = made_up_for(spec);
  for (const RunningRange& each : layout_of(spec).running({0, start.size()})) {
    for (float& value : start.span().subspan(each.range.begin, each.range.size())) {
      value = std::abs(value) + 0.1F;
    }
  }
  const std::vector<double> parameters(start.span().begin(), start.span().end());
  const double expected =
      ReferenceModel(spec).evaluated_loss(parameters, images.set(), row_numbers(0, 23));
  for (const Isa isa : supported_isas()) {
    std::vector<double> found;
    // The result must not depend on the number of rows at a time or on earlier training.
    for (const std::size_t rows : {4U, 23U}) {
      Model model(spec, rows, isa, ComputeDtype::kF32, 2);
      AlignedVector gradient(start.size());
      model.gradient(start.span(), images.set(), row_numbers(3, rows - 3), gradient.span());
      found.push_back(model.evaluate(start.span(), images.set()).loss);
    }
    EXPECT_NEAR(found[0], expected, 1e-5) << isa_name(isa);
    EXPECT_NEAR(found[0], found[1], 1e-12) << isa_name(isa);
  }
}

// A channel whose mean is a hundred times its deviation: the mean square minus the squared mean
// would lose the deviation.
TEST(BatchNorm, FindsTheVarianceOfAChannelFarFromZero) {
  const ModelSpec spec = ending_in_three(
      {.height = 9, .width = 9, .channels = 1},
      {layer_of("conv2d", {{"channels", 1.0}, {"kernel", 1.0}}), layer_of("batch_norm")});
  const MadeUpImages images(kBatchRows, spec.input.size(), spec.classes);
  AlignedVector parameters(layout_of(spec).size());
  parameters.data()[0] = 0.001F;                       // of the convolution
  parameters.data()[kVariableAlignmentFloats] = 1.0F;  // its bias
  const std::vector<double> exact(parameters.span().begin(), parameters.span().end());
  const ParameterLayout layout = layout_of(spec);
  const std::size_t variance = layout.variables()[5].offset;
  const double expected =
      ReferenceModel(spec).gradient(exact, images.set(), row_numbers(0, kBatchRows))[variance];
  for (const Isa isa : supported_isas()) {
    Model model(spec, kBatchRows, isa);
    AlignedVector gradient(parameters.size());
    model.gradient(parameters.span(), images.set(), row_numbers(0, kBatchRows), gradient.span());
    EXPECT_NEAR(gradient.data()[variance], expected, 1e-3 * expected) << isa_name(isa);
  }
}

TEST(BatchNorm, DoesNotDependOnHowManyRowsABatchMightHave) {
  const ModelSpec spec = with_batch_norm();
  const MadeUpImages images(kBatchRows, spec.input.size(), spec.classes);
  const auto gradient_with = [&](std::size_t max_batch) {
    Model model(spec, max_batch, supported_isas().front());
    AlignedVector gradient(model.layout().size());
    model.gradient(made_up_for(spec).span(), images.set(), row_numbers(0, 5), gradient.span());
    return bits_of(gradient.span());
  };
  EXPECT_EQ(gradient_with(5), gradient_with(100));
}

TEST(BatchNorm, OfNumbersNeedsTwoRows) {
  EXPECT_EQ(least_rows(ending_in_three({.channels = 4}, {layer_of("batch_norm")})), 2U);
  EXPECT_EQ(least_rows(ending_in_three({.height = 2, .width = 1, .channels = 4},
                                       {layer_of("batch_norm")})),
            1U);
}

// ---- The sums, in the order that kernels_table.h defines ----

struct Sums {
  std::vector<float> means;
  std::vector<float> squares;
};

// The sum over the positions of one channel.
template <typename Term>
float in_four_chains(std::size_t positions, const Term& term) {
  float chains[4] = {};
  for (std::size_t p = 0; p < positions; ++p) {
    chains[p % 4] += term(p);
  }
  return (chains[0] + chains[1]) + (chains[2] + chains[3]);
}

Sums moments_by_hand(std::span<const float> row, std::size_t channels) {
  const std::size_t positions = row.size() / channels;
  Sums sums;
  for (std::size_t c = 0; c < channels; ++c) {
    const auto value = [&](std::size_t p) { return row[p * channels + c]; };
    const float mean = in_four_chains(positions, value) / static_cast<float>(positions);
    sums.means.push_back(mean);
    sums.squares.push_back(in_four_chains(
        positions, [&](std::size_t p) { return (value(p) - mean) * (value(p) - mean); }));
  }
  return sums;
}

class ChannelSums : public IsaTest {};
INSTANTIATE_TEST_SUITE_P(Isas, ChannelSums, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(ChannelSums, OfARowAreFourChainsOverItsPositions) {
  for (const std::size_t channels : {1U, 5U, 16U, 35U}) {
    for (const std::size_t positions : {1U, 2U, 3U, 4U, 7U, 49U}) {
      const AlignedVector row = made_up_numbers(positions * channels, channels);
      const AlignedVector delta = made_up_numbers(positions * channels, 100 + channels);
      Sums found{std::vector<float>(channels), std::vector<float>(channels)};
      kernels(isa()).channel_moments(row.data(), found.means.data(), found.squares.data(),
                                     positions, channels);
      const Sums expected = moments_by_hand(row.span(), channels);
      ASSERT_EQ(bits_of(found.means), bits_of(expected.means)) << channels << ", " << positions;
      ASSERT_EQ(bits_of(found.squares), bits_of(expected.squares)) << channels << ", " << positions;
      kernels(isa()).channel_delta_sums(row.data(), delta.data(), expected.means.data(),
                                        expected.squares.data(), found.means.data(),
                                        found.squares.data(), positions, channels);
      for (std::size_t c = 0; c < channels; ++c) {
        const auto by_output = [&](std::size_t p) { return delta.data()[p * channels + c]; };
        const auto product = [&](std::size_t p) {
          return by_output(p) *
                 ((row.data()[p * channels + c] - expected.means[c]) * expected.squares[c]);
        };
        ASSERT_EQ(found.means[c], in_four_chains(positions, by_output)) << channels << ", " << c;
        ASSERT_EQ(found.squares[c], in_four_chains(positions, product)) << channels << ", " << c;
      }
    }
  }
}

TEST_P(ChannelSums, OfABatchAreAddedFromTheFirstRowToTheLast) {
  constexpr std::size_t kChannels = 19;
  constexpr std::size_t kManyRows = 7;
  const AlignedVector moments = made_up_numbers(kManyRows * 2 * kChannels, 1);
  Sums found{std::vector<float>(kChannels), std::vector<float>(kChannels)};
  kernels(isa()).merge_moments(moments.data(), found.means.data(), found.squares.data(), kManyRows,
                               /*positions=*/3, kChannels);
  for (std::size_t c = 0; c < kChannels; ++c) {
    const auto mean_of = [&](std::size_t row) { return moments.data()[row * 2 * kChannels + c]; };
    float mean = 0;
    for (std::size_t row = 0; row < kManyRows; ++row) {
      mean += mean_of(row);
    }
    mean /= static_cast<float>(kManyRows);
    float squares = 0;
    for (std::size_t row = 0; row < kManyRows; ++row) {
      const float beside = mean_of(row) - mean;
      squares += moments.data()[(row * 2 + 1) * kChannels + c] + 3.0F * (beside * beside);
    }
    ASSERT_EQ(found.means[c], mean) << c;
    ASSERT_EQ(found.squares[c], squares) << c;
  }
}

}  // namespace
}  // namespace disttf::math
