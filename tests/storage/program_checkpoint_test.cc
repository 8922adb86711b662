// Checkpoints of a user's program: names as the program gives them, thousands of variables, running
// statistics, single numbers.
#include <gmock/gmock.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "data/safetensors.h"
#include "model/model_files.h"
#include "net/wire/frame.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "storage/checkpoint/core/checkpoint_index.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/checkpoint/shell/checkpoint_command.h"
#include "tests/run/run_configs.h"
#include "tests/storage/checkpoint_fixture.h"
#include "tests/support/thrown.h"

namespace disttf::roles::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class ProgramCheckpointTest : public CheckpointTest {
 protected:
  ProgramCheckpointTest() {
    use({{.name = "encoder/dense/kernel:0", .shape = {5, 7}},
         {.name = "bn.running_mean", .shape = {7}, .decays = false, .momentum = 0.9F},
         {.name = ".frozen", .shape = {40}, .rate_factor = 0},
         {.name = "scale", .shape = {}, .rate_factor = 0.5F}});
  }
  void use(std::vector<math::Variable> variables) {
    config_ = base_config();
    config_.model.variables = std::move(variables);
    layout_ = math::layout_of(config_.model);
  }
  void use_thousands() {
    std::vector<math::Variable> variables;
    for (std::size_t i = 0; i < 5000; ++i) {
      variables.push_back(
          {.name = "layers." + std::to_string(i) + ".weight", .shape = {i % 3 + 1, 5}});
    }
    use(std::move(variables));
  }
  SavedCheckpoint save_program(const TrainingState& state) {
    return checkpoints_.save(++attempts_, state, layout_, to_saved_json(config_), 0);
  }
  void save_program_shards(const TrainingState& state, const std::vector<math::Range>& ranges) {
    const SaveId id{.step = state.step, .attempt = 1};
    checkpoints_.commit_shards(id, write_shards(id, state, ranges), layout_, to_saved_json(config_),
                               0);
  }

  RunConfig config_;
};

TEST_F(ProgramCheckpointTest, ComesBackBitForBitWithItsConfiguration) {
  save_program(state(5));
  const auto loaded = load();
  ASSERT_TRUE(loaded) << (warnings_.empty() ? "" : warnings_.front());
  expect_bit_identical(loaded->state, state(5));
  EXPECT_EQ(run_config_from_json(loaded->config_json).model, config_.model);
  EXPECT_EQ(difference(config_, loaded->config_json), std::nullopt);
}

TEST_F(ProgramCheckpointTest, IsShownWithoutTheSettingsOfBuiltInModels) {
  use({{.name = "w", .shape = {3}}});
  save_program(state(5));
  testing::internal::CaptureStdout();
  set_up_log({});
  EXPECT_EQ(
      run_checkpoint_command({.action = CheckpointAction::kShow, .directory = scratch_.path()}),
      kDone);
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_THAT(shown, ContainsRegex("\n  model +program of 1 variable\n"));
  EXPECT_THAT(shown, ContainsRegex("\n  batch_size +[0-9]"));
  for (const char* const other : {"hidden_units", "classes", "augment_shift", "examples"}) {
    EXPECT_THAT(shown, testing::Not(HasSubstr(other)));
  }
}

TEST_F(ProgramCheckpointTest, InShardsThatCutVariablesComesBack) {
  save_program_shards(state(5), {{0, 16}, {16, 80}, {80, layout_.size()}});
  const auto loaded = load();
  ASSERT_TRUE(loaded) << (warnings_.empty() ? "" : warnings_.front());
  expect_bit_identical(loaded->state, state(5));
}

TEST_F(ProgramCheckpointTest, HasTheNamesAndShapesOfTheProgramForOtherReaders) {
  save_program(state(5, {}));
  const auto bytes = data::test::read(file("checkpoint-00000005", kShard));
  data::SafetensorsHeader header;
  std::string detail;
  ASSERT_FALSE(data::parse_safetensors(bytes, bytes.size(), header, detail)) << detail;
  ASSERT_EQ(header.tensors.size(), 4U);
  EXPECT_EQ(header.tensors[0].name, "encoder/dense/kernel:0");
  EXPECT_THAT(header.tensors[0].shape, testing::ElementsAre(5U, 7U));
  EXPECT_EQ(header.tensors[2].name, ".frozen");
  EXPECT_TRUE(header.tensors[3].shape.empty());
  EXPECT_EQ(header.tensors[3].size_bytes, sizeof(float));
}

TEST_F(ProgramCheckpointTest, WithThousandsOfVariablesComesBack) {
  use_thousands();
  save_program(state(5));
  const auto loaded = load();
  ASSERT_TRUE(loaded) << (warnings_.empty() ? "" : warnings_.front());
  expect_bit_identical(loaded->state, state(5));
  EXPECT_EQ(run_config_from_json(loaded->config_json).model, config_.model);
}

// A ps describes its file with a checksum of each tensor, which the chief reads from a frame.
TEST_F(ProgramCheckpointTest, WithThousandsOfVariablesComesBackFromShards) {
  use_thousands();
  const std::size_t border = layout_.size() / 2048 * 1024;
  const std::vector<math::Range> ranges = {{0, border}, {border, layout_.size()}};
  const SaveId id{.step = 5, .attempt = 1};
  std::vector<ShardFile> described;
  for (const ShardFile& file : write_shards(id, state(5), ranges)) {
    const std::string json = to_json(file);
    EXPECT_GT(json.size(), net::kMaxControlBodyBytes);
    EXPECT_LT(json.size(), net::kMaxWrittenBodyBytes);
    described.push_back(shard_file_from_json(json));
  }
  checkpoints_.commit_shards(id, described, layout_, to_saved_json(config_), 0);
  const auto loaded = load();
  ASSERT_TRUE(loaded) << (warnings_.empty() ? "" : warnings_.front());
  expect_bit_identical(loaded->state, state(5));
}

TEST_F(ProgramCheckpointTest, OfOtherVariablesIsRefusedWithTheFirstOne) {
  save_program(state(5));
  config_.model.variables[1].shape = {8};
  layout_ = math::layout_of(config_.model);
  const auto failure = thrown<Failure>([&] { return load(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kUsage);
  EXPECT_THAT(failure->what(), HasSubstr("it has bn.running_mean [7], this run bn.running_mean "
                                         "[8]"));
}

TEST_F(ProgramCheckpointTest, OfOtherFactorsIsUsedAndSaysSo) {
  save_program(state(5));
  RunConfig other = config_;
  other.model.variables[3].rate_factor = 1;
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  EXPECT_THAT(difference(other, loaded->config_json).value_or(""),
              HasSubstr("variable 4 is scale"));
}

TEST_F(ProgramCheckpointTest, IsShownWithItsVariables) {
  save_program(state(5, {"m"}));
  testing::internal::CaptureStdout();
  set_up_log({});
  EXPECT_EQ(
      run_checkpoint_command({.action = CheckpointAction::kShow, .directory = scratch_.path()}),
      kDone);
  const std::string lines = testing::internal::GetCapturedStdout();
  EXPECT_THAT(lines, ContainsRegex("\n  model +program of 4 variables\n"));
  EXPECT_THAT(lines, HasSubstr("\n  encoder/dense/kernel:0 [5, 7] "));
  EXPECT_THAT(lines, HasSubstr("\n  scale [] "));
  EXPECT_THAT(lines, HasSubstr("\n  scale/m [] "));
  EXPECT_EQ(
      run_checkpoint_command({.action = CheckpointAction::kVerify, .directory = scratch_.path()}),
      kDone);
}

TEST_F(ProgramCheckpointTest, IsAModelThatNoCommandCanCompute) {
  const SavedCheckpoint saved = save_program(state(5, {}));
  const TrainedModel model = read_model(scratch_.path());
  EXPECT_EQ(model.config.model, config_.model);
  EXPECT_EQ(model.weights_sha256, saved.weights_sha256);
  const auto failure = thrown<Failure>([&] { require_layers(model.config, "predict"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kUsage);
  EXPECT_STREQ(failure->what(),
               "the model is a user's program: predict computes only models of layers");
  EXPECT_NO_THROW(require_layers(base_config(), "predict"));
}

// The index is read whatever its names: only those of files become paths.
TEST_F(ProgramCheckpointTest, OfNamesThatNoProgramHasIsRefused) {
  for (const std::string& name : {std::string(257, 'x'), std::string("a b"), std::string()}) {
    math::ParameterLayout layout;
    layout.add(name, {3});
    TrainingState small{.step = 1, .parameters = math::AlignedVector(layout.size())};
    CheckpointStore(disk_, scratch_.path() / "other").save(1, small, layout, kConfig, 0);
    EXPECT_THROW(CheckpointReader(disk_, scratch_.path() / "other/checkpoint-00000001"),
                 DamagedCheckpoint)
        << name;
    data::remove_all(disk_, scratch_.path() / "other");
  }
}

}  // namespace
}  // namespace disttf::roles::test
