// What a trained model becomes for other programs.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "data/safetensors.h"
#include "data/zip.h"
#include "math/losses/registry.h"
#include "model/export/answer_steps.h"
#include "model/export/model_facts.h"
#include "model/export/weights_files.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "tests/data/simulated_file_system.h"
#include "tests/data/tensorboard/event_reader.h"
#include "tests/model/export_fixture.h"

namespace disttf::roles {
namespace {

using data::field_of;
using data::read_message;
using data::test::PowerCut;
using data::test::SimulatedFileSystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::uint8_t> as_bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Its steps say of some examples what it says itself.
void expect_same_answers(const TrainedModel& model) {
  const AnswerSteps steps = answer_steps_of(model);
  const auto predictor = predictor_of(model, 1);
  std::uint32_t state = 3;
  for (int example = 0; example < 20; ++example) {
    std::vector<float> numbers(predictor->inputs());
    for (float& each : numbers) {
      each = std::round((next_number(state) + 1) * 127);
    }
    std::vector<float> expected(predictor->outputs());
    predictor->predict_numbers(numbers, expected);
    const std::vector<double> found = answer_by(steps, {numbers.begin(), numbers.end()});
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], double{expected[i]}, 1e-5 * std::max(1.0, std::abs(found[i])));
    }
  }
}

std::vector<std::string> names_of(const AnswerSteps& answer) {
  std::vector<std::string> names;
  for (const AnswerStep& step : answer.steps) {
    names.push_back(step.name);
  }
  return names;
}

// ---- The steps ----

TEST(AnswerSteps, SayWhatTheModelSays) {
  expect_same_answers(model_of_all_layers());
  expect_same_answers(model_of_strides());
  expect_same_answers(model_of_numbers());
  for (std::size_t kind = 0; kind < math::kModelNames.size(); ++kind) {
    TrainedModel model = model_of({.height = 12, .width = 12}, {}, 10);
    model.config.model.kind = static_cast<math::ModelKind>(kind);
    model = model_of({.height = 12, .width = 12}, math::layers_of(model.config.model), 10);
    expect_same_answers(model);
  }
}

TEST(AnswerSteps, EndAsTheLossSays) {
  TrainedModel model = model_of({.channels = 4}, {layer("dense", {{"units", 3.0}})}, 3);
  model.config.model.numbers = true;
  const std::span<const std::string_view> losses = math::loss_names();
  const auto sigmoid = std::ranges::find(losses, "sigmoid_cross_entropy");
  model.config.model.loss = static_cast<math::LossKind>(sigmoid - losses.begin());
  expect_same_answers(model);
  EXPECT_EQ(answer_steps_of(model).output_name, "probabilities");
  EXPECT_EQ(answer_steps_of(model_of_numbers()).output_name, "value");
}

TEST(AnswerSteps, BatchNormBehindWeightsBecomesPartOfThem) {
  EXPECT_THAT(names_of(answer_steps_of(model_of_all_layers())),
              ElementsAre("scaling", "batch_norm1", "conv2d1", "relu1", "max_pool1", "conv2d2",
                          "tanh1", "average_pool1", "flatten1", "batch_norm3", "sigmoid1", "dense1",
                          "relu2", "sm", "answer"));
}

// ---- ONNX ----

// Of a graph: what each node is, and what it reads and gives.
std::vector<std::string> nodes_of(const std::string& model) {
  std::vector<std::string> nodes;
  for (const data::ReadField& field : read_message(field_of(model, 7).bytes)) {
    if (field.number == 1) {
      nodes.push_back(field_of(field.bytes, 4).bytes + " " + field_of(field.bytes, 1).bytes +
                      " -> " + field_of(field.bytes, 2).bytes);
    }
  }
  return nodes;
}

TEST(Onnx, IsAGraphFromTheInputToTheAnswer) {
  const TrainedModel model = model_of_numbers();
  const std::string bytes = onnx_model(answer_steps_of(model), facts_of(model), "1.2.3");
  EXPECT_THAT(
      nodes_of(bytes),
      ElementsAre("Sub numbers -> scaling/centred/out", "Mul scaling/centred/out -> scaling/out",
                  "Gemm scaling/out -> dense1/out", "Tanh dense1/out -> tanh1/out",
                  "Gemm tanh1/out -> dense2/out", "Div dense2/out -> answer/unscaled/out",
                  "Add answer/unscaled/out -> value"));
  EXPECT_EQ(field_of(bytes, 1).value, 7U);
  EXPECT_EQ(field_of(field_of(bytes, 8).bytes, 2).value, 13U);
  EXPECT_EQ(field_of(bytes, 3).bytes, "1.2.3");
}

TEST(Onnx, TurnsAnImageOnlyWhereNoWeightsCanBeTurned) {
  const TrainedModel all = model_of_all_layers();
  const auto nodes = nodes_of(onnx_model(answer_steps_of(all), facts_of(all), ""));
  EXPECT_THAT(nodes, testing::Not(testing::Contains(HasSubstr("Transpose"))));
  const TrainedModel strides =
      model_of({.height = 2, .width = 2, .channels = 3},
               {layer("conv2d", {{"channels", 3.0}, {"kernel", 1.0}})}, 12);
  EXPECT_THAT(nodes_of(onnx_model(answer_steps_of(strides), facts_of(strides), "")),
              testing::Contains(HasSubstr("Transpose")));
}

// ---- SavedModel ----

TEST(SavedModel, HasTheSignatureThatServingAsksFor) {
  const std::string bytes = saved_model(answer_steps_of(model_of_all_layers()));
  EXPECT_EQ(field_of(bytes, 1).value, 1U);
  const std::string graph = field_of(bytes, 2).bytes;
  EXPECT_EQ(field_of(field_of(graph, 1).bytes, 4).bytes, "serve");
  const std::string entry = field_of(graph, 5).bytes;
  EXPECT_EQ(field_of(entry, 1).bytes, "serving_default");
  const std::string signature = field_of(entry, 2).bytes;
  EXPECT_EQ(field_of(field_of(signature, 1).bytes, 1).bytes, "images");
  EXPECT_EQ(field_of(field_of(signature, 2).bytes, 1).bytes, "probabilities");
  EXPECT_EQ(field_of(signature, 3).bytes, "tensorflow/serving/predict");
}

// ---- Files of variables ----

TEST(Safetensors, HasTheVariablesAndWhatIsKnown) {
  const TrainedModel model = model_of_numbers();
  const std::string bytes = safetensors_model(model, facts_of(model));
  data::SafetensorsHeader header;
  std::string detail;
  ASSERT_FALSE(data::parse_safetensors(as_bytes_of(bytes), bytes.size(), header, detail)) << detail;
  ASSERT_EQ(header.tensors.size(), 4U);
  EXPECT_EQ(header.tensors[0].name, "dense1_w");
  EXPECT_THAT(header.tensors[0].shape, ElementsAre(3, 5));
  EXPECT_EQ(header.metadata["disttf.step"], "7");
  EXPECT_EQ(header.metadata["disttf.weights_sha256"], model.weights_sha256);
  EXPECT_EQ(header.metadata["disttf.columns"], R"(["age","height","sh\"oe"])");
}

TEST(Safetensors, AreRefusedWhereTheyHoldNotWhatIsKnown) {
  TrainedModel model = model_of_numbers();
  model.config.examples.columns.assign(3, std::string(10'000, 'x'));
  EXPECT_NO_THROW(static_cast<void>(safetensors_model(model, facts_of(model))));
  EXPECT_THROW(static_cast<void>(safetensors_model(model, facts_of(model), 10'000)),
               std::runtime_error);
}

TEST(Npz, IsAnArchiveOfArrays) {
  const TrainedModel model = model_of_numbers();
  const std::string bytes = npz_model(model, facts_of(model));
  std::vector<data::ZipMember> members;
  ASSERT_FALSE(data::list_zip(data::zip_source(as_bytes_of(bytes)), members));
  ASSERT_EQ(members.size(), 5U);
  EXPECT_EQ(members[1].name, "dense1_b.npy");
  std::vector<std::uint8_t> member;
  ASSERT_FALSE(
      data::read_zip_member(data::zip_source(as_bytes_of(bytes)), "disttf.json", 1 << 20, member));
  const auto facts = nlohmann::json::parse(member);
  EXPECT_EQ(facts["disttf.step"], "7");
}

TEST(ModelFacts, HaveTheLayersOfAModelThatHasAName) {
  TrainedModel model = model_of({.height = 2, .width = 2}, {}, 10);
  model.accuracy = 0.5;
  const ModelFacts facts = facts_of(model);
  const auto layers = nlohmann::json::parse(facts.at("disttf.layers"));
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0]["name"], "hid");
  EXPECT_EQ(facts.at("disttf.accuracy"), "0.5");
  EXPECT_EQ(facts.count("disttf.classes"), 0U);
}

// ---- A user's program ----

TrainedModel model_of_a_program() {
  TrainedModel model;
  model.config.dataset = "words-v1";
  model.config.model.variables = {{.name = "dense/kernel:0", .shape = {2, 3}},
                                  {.name = "scale", .shape = {}}};
  const math::ParameterLayout layout = math::layout_of(model.config.model);
  model.parameters = math::AlignedVector(layout.size());
  model.parameters.span()[5] = 2.5F;
  model.parameters.span()[16] = -1;
  model.step = 7;
  model.weights_sha256 = weights_hash(layout, model.parameters.span());
  return model;
}

TEST(ExportOfAProgram, HasItsVariablesByName) {
  const TrainedModel model = model_of_a_program();
  const ModelFacts facts = facts_of(model);
  EXPECT_FALSE(facts.contains("disttf.layers"));
  const std::string bytes = safetensors_model(model, facts);
  data::SafetensorsHeader header;
  std::string detail;
  ASSERT_FALSE(data::parse_safetensors(as_bytes_of(bytes), bytes.size(), header, detail)) << detail;
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "dense/kernel:0");
  EXPECT_TRUE(header.tensors[1].shape.empty());
  std::vector<data::ZipMember> members;
  const std::string archive = npz_model(model, facts);
  ASSERT_FALSE(data::list_zip(data::zip_source(as_bytes_of(archive)), members));
  EXPECT_EQ(members[0].name, "dense/kernel:0.npy");
  EXPECT_EQ(run_config_from_json(facts.at("disttf.configuration")).model, model.config.model);
}

// ---- Directories ----

constexpr const char* kFolder = "/models/mine";

// What lies there: "first", "second", or "" where there is nothing.
std::string found_in(data::FileSystem& disk) {
  std::error_code none;
  if (disk.size_of(std::filesystem::path(kFolder) / "sub/a", none); none) {
    return "";
  }
  const auto read = [&disk](const char* name) {
    const auto bytes = data::read_file(disk, std::filesystem::path(kFolder) / name, 100);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(read("sub/a"), read("b"));
  return read("b");
}

DirectoryFiles contents_of(const std::string& text) { return {{"sub/a", text}, {"b", text}}; }

TEST(ExportedDirectory, IsWholeOrAbsentWheneverThePowerFails) {
  SimulatedFileSystem counted;
  write_directory(counted, kFolder, contents_of("first"), "1", false);
  ASSERT_EQ(found_in(counted), "first");
  for (std::size_t operation = 0; operation < counted.operations(); ++operation) {
    SimulatedFileSystem disk;
    disk.cut_power_at(operation);
    EXPECT_THROW(write_directory(disk, kFolder, contents_of("first"), "1", false), PowerCut);
    for (std::size_t outcome = 0; outcome < disk.state().outcomes(); ++outcome) {
      SimulatedFileSystem left(disk.state().after_power_cut(outcome));
      EXPECT_THAT(found_in(left), testing::AnyOf("", "first")) << operation;
    }
  }
  const auto end = counted.state();
  for (std::size_t outcome = 0; outcome < end.outcomes(); ++outcome) {
    SimulatedFileSystem left(end.after_power_cut(outcome));
    EXPECT_EQ(found_in(left), "first") << "what was reported is there";
  }
}

TEST(ExportedDirectory, TakesAnothersPlaceOrLeavesIt) {
  SimulatedFileSystem first;
  write_directory(first, kFolder, contents_of("first"), "1", false);
  const auto state = first.state().after_power_cut(first.state().outcomes() - 1);
  SimulatedFileSystem counted(state);
  write_directory(counted, kFolder, contents_of("second"), "2", true);
  EXPECT_EQ(found_in(counted), "second");
  std::error_code none;
  EXPECT_THAT(counted.names_in("/models", none), ElementsAre("mine"));
  for (std::size_t operation = 0; operation < counted.operations(); ++operation) {
    SimulatedFileSystem disk(state);
    disk.fail_at(operation, std::errc::io_error);
    try {
      write_directory(disk, kFolder, contents_of("second"), "2", true);
    } catch (const std::system_error&) {
      EXPECT_NE(found_in(disk), "") << operation;
      continue;
    }
    EXPECT_EQ(found_in(disk), "second") << operation;
  }
}

TEST(ExportedDirectory, OfDisttfIsAModelThatIsRead) {
  TrainedModel model = model_of_all_layers();
  model.accuracy = 0.75;
  model.config.examples.classes = {"a", "b", "c"};
  SimulatedFileSystem disk;
  write_directory(disk, kFolder, disttf_model(model), "1", false);
  const CheckpointReader reader(disk, kFolder);
  EXPECT_EQ(reader.verify(), std::vector<std::string>());
  EXPECT_EQ(reader.index().accuracy, 0.75);
  const TrainingState state = reader.read();
  EXPECT_EQ(state.step, 7U);
  EXPECT_TRUE(state.optimizer.empty());
  EXPECT_EQ(weights_hash(reader.index().layout, state.parameters.span()), model.weights_sha256);
  EXPECT_EQ(run_config_from_json(reader.index().config_json).examples.classes,
            model.config.examples.classes);
}

}  // namespace
}  // namespace disttf::roles
