// The known models, and the layout of their parameters.
#include "math/model_spec.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "math/model.h"
#include "math/program_layout.h"
#include "tests/math/made_up.h"
#include "tests/support/thrown.h"

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
  const auto error = thrown<std::invalid_argument>([&] { validate(spec); });
  ASSERT_TRUE(error) << field << " " << value << " was accepted";
  EXPECT_THAT(error->what(), testing::HasSubstr(field));
  EXPECT_THAT(error->what(), testing::HasSubstr(value));
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

// The variables of a user's program: what is allowed, and the sentence about the first difference.

ModelSpec program(std::vector<Variable> variables) { return {.variables = std::move(variables)}; }

// A convolutional network as PyTorch names it: with batch norm, a frozen variable, and a number.
ModelSpec small_program() {
  return program({{.name = "fc1.weight", .shape = {784, 100}},
                  {.name = "fc1.bias", .shape = {100}, .decays = false},
                  {.name = "bn.running_mean", .shape = {3}, .decays = false, .momentum = 0.9F},
                  {.name = "embedding", .shape = {5, 3}, .rate_factor = 0},
                  {.name = "temperature", .shape = {}, .rate_factor = 0.5F}});
}

std::string problem_of(const ModelSpec& spec) {
  return sentence_of([&] { validate(spec); }, "");
}

std::string problem_of(Variable variable) { return problem_of(program({std::move(variable)})); }

TEST(Program, LaysItsVariablesOutInOrder) {
  const ParameterLayout layout = layout_of(small_program());
  ASSERT_EQ(layout.variables().size(), 5U);
  EXPECT_EQ(layout.variables()[1].offset, 78'400U);
  EXPECT_EQ(layout.variables()[2].offset, 78'400U + 112);
  EXPECT_EQ(layout.variables()[4].size, 1U);
  EXPECT_EQ(layout.size(), 78'400U + 112 + 16 + 16 + 16);
  EXPECT_EQ(layout.parameter_count(), 78'400U + 100 + 3 + 15 + 1);
}

TEST(Program, KeepsWhatAnUpdateNeeds) {
  const ParameterLayout layout = layout_of(small_program());
  const Range tail{78'400, layout.size()};
  EXPECT_EQ(layout.decaying(tail), (std::vector<Range>{{128, 143}, {144, 145}}));
  EXPECT_EQ(layout.running(tail), (std::vector<RunningRange>{{{112, 115}, 0.9F}}));
  EXPECT_EQ(layout.rate_factors(tail),
            (std::vector<RateRange>{{{128, 143}, 0.0F}, {{144, 145}, 0.5F}}));
}

TEST(Program, IgnoresOffsetsAndSizesOfTheSpec) {
  ModelSpec spec = small_program();
  spec.variables[1].offset = 5;
  spec.variables[1].size = 7;
  EXPECT_EQ(spec, small_program());
  const ParameterLayout layout = layout_of(spec);
  EXPECT_EQ(layout.variables()[1].offset, 78'400U);
  EXPECT_EQ(layout.variables()[1].size, 100U);
}

// Layers, images and classes of the spec would not be allowed.
TEST(Program, HasNoLayersAndNoImages) {
  ModelSpec spec = small_program();
  spec.layers = {{.type = "no layer", .name = {}, .fields = {}}};
  spec.input = {.height = 0, .width = 0};
  spec.classes = 0;
  spec.hidden = {};
  EXPECT_TRUE(spec.is_program());
  EXPECT_EQ(problem_of(spec), "");
  EXPECT_FALSE(is_convolutional(spec));
  EXPECT_EQ(least_rows(spec), 1U);
  EXPECT_EQ(activation_floats(spec), 0U);
  EXPECT_EQ(describe(spec), "program of 5 variables");
  EXPECT_EQ(describe(program({{.name = "w", .shape = {1}}})), "program of 1 variable");
  EXPECT_THROW(static_cast<void>(layers_of(spec)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(make_layers(spec)), std::invalid_argument);
  EXPECT_FALSE(ModelSpec{}.is_program());
}

TEST(Program, RefusesNames) {
  const auto named = [](std::string name) {
    return problem_of({.name = std::move(name), .shape = {1}});
  };
  EXPECT_EQ(named("~!layer/kernel:0"), "");
  EXPECT_EQ(named(std::string(256, 'x')), "");
  EXPECT_THAT(named(""), testing::StartsWith("variable 1: its name is not 1 to 256"));
  EXPECT_THAT(named(std::string(257, 'x')), testing::HasSubstr("1 to 256"));
  EXPECT_THAT(named("a b"), testing::HasSubstr("without blanks"));
  EXPECT_THAT(named("caf\xc3\xa9"), testing::HasSubstr("ASCII"));
  EXPECT_THAT(named("a\x7f"), testing::HasSubstr("ASCII"));
  EXPECT_THAT(named("__metadata__"), testing::HasSubstr("__metadata__"));
  EXPECT_EQ(problem_of(program({{.name = "a", .shape = {1}}, {.name = "a", .shape = {2}}})),
            "variable 2: the name a is another variable's already");
}

// Adam's "m" of "w" is the tensor "w/m" of a checkpoint, and its first 512 floats "w:0-512".
TEST(Program, RefusesNamesThatACheckpointNeeds) {
  const auto beside_w = [](std::string name) {
    return problem_of(
        program({{.name = std::move(name), .shape = {1}}, {.name = "w", .shape = {1}}}));
  };
  for (const char* name : {"w/m", "w/average", "w/accumulator", "w:0-512", "w/momentum:16-32"}) {
    EXPECT_EQ(beside_w(name), "variable 1: the name " + std::string(name) +
                                  " is that of a tensor for w in a checkpoint; rename one of them");
  }
  for (const char* name : {"w/kernel", "x/m", "w:0", "w:0-", "w:-5", "w/m/x", "x/w/m", "w/m:0"}) {
    EXPECT_EQ(beside_w(name), "");
  }
}

TEST(Program, RefusesShapes) {
  const auto shaped = [](std::vector<std::size_t> shape) {
    return problem_of({.name = "w", .shape = std::move(shape)});
  };
  constexpr std::size_t kMost = std::size_t{1} << 31U;
  EXPECT_EQ(shaped({}), "");
  EXPECT_EQ(shaped({kMost}), "");
  EXPECT_EQ(shaped(std::vector<std::size_t>(64, 1)), "");
  EXPECT_EQ(shaped({3, 0}), "variable 1: w [3, 0] is empty, or has more than 2147483648 numbers");
  EXPECT_THAT(shaped({kMost, 2}), testing::HasSubstr("2147483648"));
  EXPECT_THAT(shaped({std::size_t{1} << 32U, std::size_t{1} << 32U}),
              testing::HasSubstr("2147483648"));
  EXPECT_THAT(shaped(std::vector<std::size_t>(65, 1)), testing::HasSubstr("65 dimensions"));
}

TEST(Program, RefusesNumbers) {
  const auto with = [](float factor, std::optional<float> momentum) {
    return problem_of({.name = "w", .shape = {1}, .momentum = momentum, .rate_factor = factor});
  };
  EXPECT_EQ(with(1000, std::nullopt), "");
  EXPECT_EQ(with(1, 0.0F), "");
  EXPECT_EQ(with(-0.5F, std::nullopt),
            "variable 1: the rate_factor of w is -0.5, it must be from 0 to 1000");
  EXPECT_THAT(with(1001, std::nullopt), testing::HasSubstr("1001"));
  EXPECT_THAT(with(NAN, std::nullopt), testing::HasSubstr("rate_factor"));
  EXPECT_THAT(with(1, 1.0F), testing::HasSubstr("momentum of w is 1"));
  EXPECT_THAT(with(1, -0.1F), testing::HasSubstr("momentum"));
  EXPECT_THAT(with(1, NAN), testing::HasSubstr("momentum"));
  EXPECT_THAT(with(0, 0.9F), testing::HasSubstr("a running statistic has no learning rate"));
}

TEST(Program, RefusesTooManyVariablesAndNumbers) {
  std::vector<Variable> many;
  for (std::size_t i = 0; i < kMaxProgramVariables; ++i) {
    many.push_back({.name = "layers." + std::to_string(i) + ".weight", .shape = {2}});
  }
  EXPECT_EQ(problem_of(program(many)), "");
  many.push_back({.name = "one_more", .shape = {2}});
  EXPECT_THAT(problem_of(program(many)), testing::HasSubstr("variables: 65537 are not allowed"));
  // The padding counts: it is part of the vector.
  EXPECT_THAT(problem_of(program({{.name = "a", .shape = {kMaxProgramFloats - 16}},
                                  {.name = "b", .shape = {17}}})),
              testing::HasSubstr("2147483664 numbers"));
  many.resize(kMaxProgramVariables);
  for (Variable& variable : many) {
    variable.name.insert(0, std::string(150, '"'));
  }
  EXPECT_THAT(problem_of(program(many)), testing::HasSubstr("their names and shapes take"));
}

TEST(LayoutDifference, NamesTheFirstOne) {
  const auto layout = [](std::vector<Variable> variables) {
    return layout_of(program(std::move(variables)));
  };
  const Variable first{.name = "fc1.weight", .shape = {784, 100}};
  const ParameterLayout mine = layout({first, {.name = "fc2.weight", .shape = {100, 10}}});
  EXPECT_EQ(layout_difference(mine, mine), std::nullopt);
  EXPECT_EQ(layout_difference(mine, layout({first, {.name = "fc2.weight", .shape = {100, 20}}})),
            "variable 2 is fc2.weight [100, 10], the chief's is fc2.weight [100, 20]");
  EXPECT_EQ(layout_difference(mine, layout({first})),
            "variable 2 is fc2.weight [100, 10], the chief's are only 1");
  EXPECT_EQ(layout_difference(layout({first}), mine, "the checkpoint's"),
            "there is no variable 2, the checkpoint's is fc2.weight [100, 10]");
}

TEST(LayoutDifference, ComparesDecayFactorAndMomentum) {
  const auto one = [](bool decays, float factor, std::optional<float> momentum) {
    return layout_of(program({{.name = "w",
                               .shape = {},
                               .decays = decays,
                               .momentum = momentum,
                               .rate_factor = factor}}));
  };
  const ParameterLayout plain = one(true, 1, std::nullopt);
  EXPECT_EQ(layout_difference(plain, one(false, 1, std::nullopt)),
            "variable 1 is w [], the chief's is w [], no weight decay");
  EXPECT_EQ(layout_difference(plain, one(true, 0.1F, std::nullopt)),
            "variable 1 is w [], the chief's is w [], rate factor 0.1");
  EXPECT_EQ(layout_difference(plain, one(true, 1, 0.9F)),
            "variable 1 is w [], the chief's is w [], running statistic with momentum 0.9");
}

}  // namespace
}  // namespace disttf::math
