// disttf model show NAME
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using testing::HasSubstr;

std::string said(const std::string& line) { return action_of<Print>(line).text; }

TEST(ModelShow, PrintsALineForEachLayerAndTheirSum) {
  EXPECT_EQ(said("model show mlp"),
            "mlp for 28x28x1 and 10 classes\n\n"
            "layer         type          output        parameters   multiply-adds         bytes\n"
            "hid           dense         100                78500           78400        314000\n"
            "relu1         relu          100                    0               0             0\n"
            "sm            dense         10                  1010            1000          4040\n"
            "total                                          79510           79400        318040\n\n"
            "Multiply-adds count one forward pass of one example; bytes count the parameters.\n"
            "A trainer keeps 4016 bytes for each example of a batch.\n");
}

// Computed by hand: 25 * 32 * 28 * 28 + 25 * 32 * 64 * 14 * 14 + 3136 * 1024 + 1024 * 10.
TEST(ModelShow, CountsWhatAConvolutionMultiplies) {
  const auto model = nlohmann::json::parse(said("model show lenet --json"));
  EXPECT_EQ(model.at("parameters"), 3274634);
  EXPECT_EQ(model.at("multiply_adds"), 627200 + 10035200 + 3211264 + 10240);
  EXPECT_EQ(model.at("layers").size(), 11U);
  EXPECT_EQ(model.at("layers")[3].at("name"), "conv2");
  EXPECT_EQ(model.at("layers")[3].at("output"), "14x14x64");
}

TEST(ModelShow, TellsWhatIsTrainedFromRunningStatistics) {
  const std::string path = testing::TempDir() + "model_command_test_norm.toml";
  std::ofstream(path) << "[[layer]]\n"
                         "type = 'batch_norm'\n"
                         "[[layer]]\n"
                         "type = 'dense'\n"
                         "units = 3\n";
  const std::string line = "model show " + path + " --input 4 --classes 3";
  EXPECT_THAT(
      said(line),
      HasSubstr(
          "batch_norm1   batch_norm    4                     16               4            64\n"
          "dense1        dense         3                     15              12            60\n"
          "total                                             31              16           124\n"
          "\n"
          "23 of the parameters are trained, 8 are running statistics.\n"
          "Multiply-adds"));
  const auto model = nlohmann::json::parse(said(line + " --json"));
  EXPECT_EQ(model.at("parameters"), 31);
  EXPECT_EQ(model.at("trained_parameters"), 23);
  EXPECT_EQ(model.at("layers")[0].at("trained_parameters"), 8);
}

TEST(ModelShow, TakesTheShapeOfTheExamples) {
  const auto model =
      nlohmann::json::parse(said("model show mlp --input=4 --classes=3 --hidden_units=7,5 --json"));
  EXPECT_EQ(model.at("parameters"), 4 * 7 + 7 + 7 * 5 + 5 + 5 * 3 + 3);
  EXPECT_EQ(nlohmann::json::parse(said("model show cnn --input 32x32x3 --json")).at("input"),
            "32x32x3");
  EXPECT_EQ(nlohmann::json::parse(said("model show cnn --input 32x32 --json")).at("input"),
            "32x32x1");
}

TEST(ModelShow, SaysWhatIsWrong) {
  EXPECT_EQ(refusal("model"), "model: the action is missing; show (see disttf model --help)");
  EXPECT_EQ(refusal("model draw mlp"), "model: \"draw\" is not show (see disttf model --help)");
  EXPECT_EQ(refusal("model show"),
            "model show: the name is missing; softmax, mlp, lenet, cnn, or a model file, which "
            "ends in .toml (see disttf model --help)");
  EXPECT_EQ(refusal("model show resnet"),
            "model show: \"resnet\" is not softmax, mlp, lenet, cnn, or a model file, which ends "
            "in .toml (see disttf model --help)");
  for (const char* shape : {"28x", "x28", "28x28x1x1", "28*28", "-3", "28x28x1y"}) {
    EXPECT_THAT(refusal(std::string("model show mlp --input=") + shape),
                HasSubstr(" is not HEIGHTxWIDTHxCHANNELS, like 28x28x1"))
        << shape;
  }
  EXPECT_THAT(refusal("model show lenet --input 1x1x1"),
              HasSubstr("layer 3 (max_pool): size: 2 is larger than the image, which is 32"));
  EXPECT_THAT(refusal("model show mlp --input 0"),
              HasSubstr("channels: 0 is not allowed, it must be from 1 to 1048576"));
  EXPECT_THAT(refusal("model show mlp --classes 1"),
              HasSubstr("--classes: 1 is not from 2 to 256"));
  EXPECT_THAT(refusal("model show mlp --hidden_units 0"), HasSubstr("--hidden_units"));
}

TEST(ModelShow, HasAHelp) {
  EXPECT_THAT(said("model --help"), HasSubstr("--input"));
  EXPECT_THAT(said("model show --help"), HasSubstr("oftmax, mlp, lenet, cnn, or a model file"));
}

}  // namespace
}  // namespace disttf
