// The known models, and the layout of their parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "math/model.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

std::vector<std::string> names_of(const ModelSpec& spec) {
  std::vector<std::string> names;
  const ParameterLayout layout = layout_of(spec);
  for (const Variable& variable : layout.variables()) {
    names.push_back(variable.name);
  }
  return names;
}

TEST(ModelName, ComesBack) {
  for (const ModelKind kind : {ModelKind::kSoftmax, ModelKind::kMlp}) {
    EXPECT_EQ(model_from_name(model_name(kind)), kind);
  }
  EXPECT_EQ(model_from_name("transformer"), std::nullopt);
}

TEST(LayoutOf, NamesVariablesAsTensorFlowsTutorialDoes) {
  EXPECT_EQ(names_of(softmax(784, 10)), (std::vector<std::string>{"sm_w", "sm_b"}));
  EXPECT_EQ(names_of(mlp(784, {100}, 10)),
            (std::vector<std::string>{"hid_w", "hid_b", "sm_w", "sm_b"}));
  EXPECT_EQ(names_of(mlp(784, {8, 7, 6}, 10)),
            (std::vector<std::string>{"hid_w", "hid_b", "hid2_w", "hid2_b", "hid3_w", "hid3_b",
                                      "sm_w", "sm_b"}));
}

TEST(LayoutOf, ShapesWeightsAsInputsByUnits) {
  const ParameterLayout layout = layout_of(mlp(784, {100}, 10));
  EXPECT_EQ(layout.variables()[0].shape, (std::vector<std::size_t>{784, 100}));
  EXPECT_EQ(layout.variables()[1].shape, (std::vector<std::size_t>{100}));
  EXPECT_EQ(layout.variables()[2].shape, (std::vector<std::size_t>{100, 10}));
  EXPECT_EQ(layout.parameter_count(), 79510U);
}

// By hand: 5*5*32 + 32, 5*5*32*64 + 64, 7*7*64*1024 + 1024, 1024*10 + 10.
TEST(ModelSpec, LenetHasTheTutorialsParameters) {
  const ModelSpec spec{.kind = ModelKind::kLenet};
  EXPECT_EQ(layout_of(spec).parameter_count(), 3274634U);
  EXPECT_THAT(names_of(spec), testing::ElementsAre("conv1_w", "conv1_b", "conv2_w", "conv2_b",
                                                   "fc1_w", "fc1_b", "sm_w", "sm_b"));
}

void expect_refused(const ModelSpec& spec, const std::string& field, const std::string& value) {
  try {
    validate(spec);
    ADD_FAILURE() << field << " " << value << " was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(field));
    EXPECT_THAT(error.what(), testing::HasSubstr(value));
  }
}

TEST(ModelSpec, IsRefusedWithFieldAndValue) {
  expect_refused(mlp(784, {}, 10), "hidden layers", "0");
  expect_refused(mlp(784, std::vector<std::size_t>(17, 8), 10), "hidden layers", "17");
  expect_refused(mlp(784, {100, 0}, 10), "hidden_units", "0");
  expect_refused(mlp(784, {65537}, 10), "hidden_units", "65537");
  expect_refused(mlp(0, {100}, 10), "channels", "0");
  expect_refused(softmax(784, 1), "classes", "1");
  expect_refused(softmax(784, 257), "classes", "257");
}

TEST(ModelSpec, IsRefusedWithoutParameters) {
  for (const char* type : {"flatten", "relu"}) {
    ModelSpec spec = softmax(10, 10);
    spec.layers = {{.type = type, .name = {}, .fields = {}}};
    expect_refused(spec, "layers", "none of them has parameters");
  }
}

TEST(ModelSpec, IgnoresHiddenUnitsOfSoftmax) {
  ModelSpec spec = softmax(784, 10);
  spec.hidden = {0};
  EXPECT_NO_THROW(validate(spec));
}

TEST(LayoutOf, WeightsDecayAndBiasesDoNot) {
  const ParameterLayout layout = layout_of({.hidden = {5, 6}});
  ASSERT_EQ(layout.variables().size(), 6U);
  for (const Variable& variable : layout.variables()) {
    EXPECT_EQ(variable.decays, variable.name.ends_with("_w")) << variable.name;
  }
}

TEST(ModelSpecTest, OfNumbersHasOneOutputAndNoSmoothing) {
  ModelSpec spec = softmax(4, 1);
  spec.loss = LossKind::kMeanSquaredError;
  EXPECT_NO_THROW(validate(spec));
  spec.classes = 2;
  expect_refused(spec, "classes", "2");
  spec.classes = 1;
  spec.label_smoothing = 0.1F;
  expect_refused(spec, "label_smoothing", "mean_squared_error");
}

}  // namespace
}  // namespace disttf::math
