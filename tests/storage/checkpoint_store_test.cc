#include "storage/checkpoint/core/checkpoint_store.h"

#include <gmock/gmock.h>

#include <chrono>

#include "model/trained_model.h"
#include "run/outcome.h"
#include "tests/storage/checkpoint_fixture.h"
#include "tests/support/thrown.h"

namespace disttf::roles::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(CheckpointTest, WhatIsSavedComesBackBitForBit) {
  save(500);
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  expect_bit_identical(loaded->state, state(500));
  EXPECT_EQ(loaded->config_json, kConfig);
  EXPECT_EQ(loaded->path, scratch_.path() / "checkpoint-00000500");
  EXPECT_TRUE(warnings_.empty());
  EXPECT_THAT(scratch_.names(), ElementsAre("checkpoint-00000500"));
}

TEST_F(CheckpointTest, NoDirectoryIsNoCheckpoint) {
  EXPECT_EQ(loaded_step(), 0U);
  checkpoints_ = CheckpointStore(disk_, scratch_.path() / "never");
  EXPECT_EQ(loaded_step(), 0U);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CheckpointTest, TheFirstSaveMakesTheDirectoryAndItsParents) {
  checkpoints_ = CheckpointStore(disk_, scratch_.path() / "a" / "b");
  save(1);
  EXPECT_EQ(loaded_step(), 1U);
}

TEST_F(CheckpointTest, IsNotSavedWithoutItsPermit) {
  save(1);
  checkpoints_ = CheckpointStore(disk_, scratch_.path(),
                                 [] { throw std::runtime_error("another run is there"); });
  EXPECT_THROW(save(2), std::runtime_error);
  EXPECT_THAT(scratch_.names(), ElementsAre("checkpoint-00000001"));
}

TEST_F(CheckpointTest, TheNewestCountsByStepNotByName) {
  save(99'999'999);
  save(100'000'000);
  save(5);
  EXPECT_EQ(loaded_step(), 100'000'000U);
}

TEST_F(CheckpointTest, AStateWithoutOptimizerTensorsHasNoneAfterwards) {
  checkpoints_.save(1, state(1, {}), layout_, kConfig, 0);
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->state.optimizer.empty());
}

// Any division of the vector among the ps: inside a variable, at its end, in padding, with empty
// ranges.
TEST_F(CheckpointTest, ShardsOfAnyCutsAreTheSameState) {
  const std::vector<std::vector<math::Range>> cuts = {
      {{0, 112}},
      {{0, 32}, {32, 112}},
      {{0, 35}, {35, 48}, {48, 112}},
      {{0, 40}, {40, 97}, {97, 112}, {112, 112}},
      {{0, 0}, {0, 1}, {1, 2}, {2, 70}, {70, 71}, {71, 111}, {111, 112}}};
  for (const auto& ranges : cuts) {
    save_shards(state(3), ranges);
    const auto loaded = load();
    ASSERT_TRUE(loaded) << ranges.size() << " shards";
    expect_bit_identical(loaded->state, state(3));
    EXPECT_TRUE(warnings_.empty());
  }
}

// A run with another number of ps restores the state, and saves it again.
TEST_F(CheckpointTest, ARunWithOtherPsGoesOnWithTheSameState) {
  save_shards(state(3), {{0, 32}, {32, 112}});
  auto loaded = load();
  ASSERT_TRUE(loaded);
  loaded->state.step = 4;
  save_shards(loaded->state, {{0, 16}, {16, 80}, {80, 112}});
  loaded = load();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->state.step, 4U);
  EXPECT_EQ(bits(loaded->state.parameters), bits(state(3).parameters));
}

// Adagrad's accumulator starts at 0.1, also in the padding; the file contains no padding.
TEST_F(CheckpointTest, TrainingGoesOnBitForBitWithEveryOptimizer) {
  using math::OptimizerKind;
  for (const auto kind : {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdagrad,
                          OptimizerKind::kAdam, OptimizerKind::kAdamw}) {
    SCOPED_TRACE(math::optimizer_name(kind));
    math::Optimizer first({.kind = kind}, layout_.size(), math::Isa::kGeneric);
    TrainingState saved;
    saved.parameters = math::AlignedVector(layout_.size());
    math::AlignedVector gradient(layout_.size());
    for (const math::Variable& variable : layout_.variables()) {
      for (std::size_t i = 0; i < variable.size; ++i) {
        gradient.span()[variable.offset + i] = static_cast<float>(i) - 2.5F;
      }
    }
    const auto make_step = [&](math::Optimizer& optimizer, math::AlignedVector& parameters,
                               std::uint64_t step) {
      optimizer.apply(parameters.span(), gradient.span(), 0.01F, step);
    };
    for (saved.step = 1; saved.step < 5; ++saved.step)
      make_step(first, saved.parameters, saved.step);
    for (const math::StateTensor& tensor : first.state()) {
      saved.optimizer.push_back(
          {.name = std::string(tensor.name), .values = math::AlignedVector(layout_.size())});
      std::ranges::copy(tensor.values, saved.optimizer.back().values.data());
    }
    checkpoints_.save(1, saved, layout_, kConfig, 0);

    auto loaded = load();
    ASSERT_TRUE(loaded);
    expect_bit_identical(loaded->state, saved);
    math::Optimizer second({.kind = kind}, layout_.size(), math::Isa::kGeneric);
    const auto tensors = second.state();
    ASSERT_EQ(tensors.size(), loaded->state.optimizer.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::ranges::copy(loaded->state.optimizer[i].values.span(), tensors[i].values.begin());
    }
    for (std::uint64_t step = 5; step < 10; ++step) {
      make_step(first, saved.parameters, step);
      make_step(second, loaded->state.parameters, step);
    }
    EXPECT_EQ(bits(loaded->state.parameters), bits(saved.parameters));
  }
}

TEST_F(CheckpointTest, AnotherOptimizerBeginsAnew) {
  TrainingState adam = state(5);
  EXPECT_EQ(fit_optimizer(adam, {.kind = math::OptimizerKind::kAdam}), std::nullopt);
  EXPECT_EQ(adam.optimizer.size(), 2U);
  const auto sentence = fit_optimizer(adam, {.kind = math::OptimizerKind::kAdagrad});
  EXPECT_THAT(sentence.value_or(""), HasSubstr("adagrad"));
  EXPECT_TRUE(adam.optimizer.empty());
  EXPECT_EQ(bits(adam.parameters), bits(state(5).parameters));
  TrainingState sgd = state(5, {});
  EXPECT_EQ(fit_optimizer(sgd, {.kind = math::OptimizerKind::kSgd}), std::nullopt);
}

TEST_F(CheckpointTest, AveragesBeginAndEndWithoutTheOptimizer) {
  const math::OptimizerSpec plain{.kind = math::OptimizerKind::kAdam};
  const math::OptimizerSpec averaged{.kind = math::OptimizerKind::kAdam, .average_decay = 0.9F};
  TrainingState adam = state(5);
  EXPECT_EQ(fit_optimizer(adam, averaged), std::nullopt);
  ASSERT_EQ(adam.optimizer.size(), 3U);
  EXPECT_EQ(adam.optimizer.back().name, math::kAverageName);
  EXPECT_EQ(bits(adam.optimizer.back().values), bits(adam.parameters)) << "they begin with these";
  adam.optimizer.back().values.data()[0] = 42;
  EXPECT_EQ(fit_optimizer(adam, averaged), std::nullopt);
  EXPECT_EQ(adam.optimizer.back().values.data()[0], 42) << "they go on";
  EXPECT_EQ(fit_optimizer(adam, plain), std::nullopt);
  EXPECT_EQ(adam.optimizer.size(), 2U);
  TrainingState sgd = state(5, {});
  EXPECT_EQ(fit_optimizer(sgd, {.kind = math::OptimizerKind::kSgd, .average_decay = 0.9F}),
            std::nullopt);
  EXPECT_EQ(sgd.optimizer.size(), 1U);
}

TEST_F(CheckpointTest, AnotherModelIsRefusedWithBothShapes) {
  save(5);
  layout_ = {};
  layout_.add("hid_w", {5, 8});
  const auto failure = thrown<Failure>([&] { return load(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kUsage);
  EXPECT_THAT(failure->what(),
              HasSubstr("checkpoint-00000005 is of another model: it has hid_w [5, 7], this run "
                        "hid_w [5, 8]; give the flags of its run, or another directory"));
}

TEST_F(CheckpointTest, AModelWithMoreOrFewerVariablesIsRefused) {
  save(5);
  layout_.add("more", {2});
  EXPECT_THROW(static_cast<void>(load()), Failure);
  layout_ = {};
  layout_.add("hid_w", {5, 7});
  EXPECT_THROW(static_cast<void>(load()), Failure);
}

TEST_F(CheckpointTest, AStepThatIsSavedAgainReplacesTheOldOne) {
  checkpoints_.save(1, state(5, {"m"}), layout_, kConfig, 0);
  save(5);
  EXPECT_THAT(scratch_.names(), ElementsAre("checkpoint-00000005-2"));
  save(5);
  EXPECT_THAT(scratch_.names(), ElementsAre("checkpoint-00000005-3"));
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  expect_bit_identical(loaded->state, state(5));
}

TEST_F(CheckpointTest, AStepMayBeSavedAgainAnyNumberOfTimes) {
  std::filesystem::create_directory(scratch_.path() / "checkpoint-00000005-1000");
  save(5, 1);
  EXPECT_THAT(scratch_.names(), testing::Contains("checkpoint-00000005-1001"));
  EXPECT_EQ(loaded_step(), 5U);
}

TEST_F(CheckpointTest, KeepsTheNewestFew) {
  for (std::uint64_t step = 1; step <= 5; ++step) save(step, 2);
  EXPECT_THAT(scratch_.names(), ElementsAre("checkpoint-00000004", "checkpoint-00000005"));
}

TEST_F(CheckpointTest, KeepsAllWithZero) {
  for (std::uint64_t step = 1; step <= 8; ++step) save(step, 0);
  EXPECT_EQ(scratch_.names().size(), 8U);
}

// Two are damaged and one is intact: if the damaged ones counted, pruning would remove it.
TEST_F(CheckpointTest, DamagedOnesAreNoneOfThoseThatAreKept) {
  for (std::uint64_t step = 1; step <= 4; ++step) save(step, 0);
  std::filesystem::remove(file("checkpoint-00000003", kIndex));
  change(file("checkpoint-00000004", kShard), [](auto& bytes) { bytes.pop_back(); });
  save(5, 2);
  std::filesystem::remove(file("checkpoint-00000005", kIndex));
  EXPECT_EQ(loaded_step(), 2U);
  save(6, 2);
  EXPECT_THAT(scratch_.names(),
              ElementsAre("checkpoint-00000002", "checkpoint-00000003", "checkpoint-00000004",
                          "checkpoint-00000005", "checkpoint-00000006"));
}

// For a checkpoint that this process has read intact, it compares only file sizes. Another process
// reads it again.
TEST_F(CheckpointTest, ReadsNoIndexASecondTime) {
  for (std::uint64_t step = 1; step <= 3; ++step) save(step, 3);
  change(file("checkpoint-00000003", kIndex), [](auto& bytes) { bytes.back() ^= 1U; });
  save(4, 3);
  EXPECT_THAT(scratch_.names(),
              ElementsAre("checkpoint-00000002", "checkpoint-00000003", "checkpoint-00000004"));
  CheckpointStore other(disk_, scratch_.path());
  other.save(++attempts_, state(5), layout_, kConfig, 3);
  EXPECT_THAT(scratch_.names(), ElementsAre("checkpoint-00000002", "checkpoint-00000003",
                                            "checkpoint-00000004", "checkpoint-00000005"))
      << "the third is damaged, so that the second counts";
}

// Another intact checkpoint has replaced it.
TEST_F(CheckpointTest, ReadsAnIndexAgainWhereFilesAreNotAsTheyWere) {
  for (std::uint64_t step = 1; step <= 3; ++step) save(step, 3);
  std::filesystem::remove_all(scratch_.path() / "checkpoint-00000003");
  CheckpointStore other(disk_, scratch_.path());
  other.save(++attempts_, state(3, {}), layout_, kConfig, 0);
  save(4, 3);
  EXPECT_THAT(scratch_.names(),
              ElementsAre("checkpoint-00000002", "checkpoint-00000003", "checkpoint-00000004"))
      << "the third counts, so that the first may go";
}

TEST_F(CheckpointTest, SaysWhatItHasSaved) {
  for (const std::string name : {"checkpoint-00000007", "checkpoint-00000007-2"}) {
    const SavedCheckpoint saved = checkpoints_.save(++attempts_, state(7), layout_, kConfig, 0);
    EXPECT_EQ(saved.name, name);
    EXPECT_EQ(saved.size_bytes, std::filesystem::file_size(file(name, kShard)));
    EXPECT_EQ(saved.weights_sha256, weights_hash(layout_, state(7).parameters.span()));
  }
}

// A run that was rolled back behind a damaged checkpoint saves lower steps.
TEST_F(CheckpointTest, TheOneJustWrittenStaysWhateverIsNewer) {
  save(9);
  change(file("checkpoint-00000009", kShard), [](auto& bytes) { bytes.back() ^= 1U; });
  save(4, 1);
  save(5, 1);
  EXPECT_THAT(scratch_.names(), ElementsAre("checkpoint-00000005", "checkpoint-00000009"));
  EXPECT_EQ(loaded_step(), 5U);
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(CheckpointTest, FilesOfOthersInTheDirectoryAreLeftAlone) {
  const auto names = {"checkpoint", "checkpoint-5", "checkpoint-00000001x", "notes.txt",
                      "checkpoint-00000001-1"};
  for (const char* name : names) std::filesystem::create_directory(scratch_.path() / name);
  for (std::uint64_t step = 1; step <= 3; ++step) save(step, 1);
  EXPECT_EQ(scratch_.names().size(), names.size() + 1);
  EXPECT_EQ(loaded_step(), 3U);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CheckpointTest, ShardsMustBeTheWholeModelInOrder) {
  const SaveId id{.step = 3, .attempt = 1};
  const auto files = write_shards(id, state(3), {{0, 32}, {32, 64}, {64, 112}});
  const auto refuses = [&](const std::vector<ShardFile>& some) {
    EXPECT_THROW(checkpoints_.commit_shards(id, some, layout_, kConfig, 0), std::runtime_error);
    EXPECT_EQ(loaded_step(), 0U);
  };
  refuses({});
  refuses({files[0], files[1]});
  refuses({files[1], files[0], files[2]});
  auto changed = files;
  changed[2].range.end = 111;
  refuses(changed);
  changed = files;
  changed[1].name = "../../etc/passwd";
  refuses(changed);
  changed = files;
  changed[1].optimizer = {"m"};
  refuses(changed);
  changed = files;
  changed[1].sha256.pop_back();
  refuses(changed);
  checkpoints_.commit_shards(id, files, layout_, kConfig, 0);
  EXPECT_EQ(loaded_step(), 3U);
}

// The ps have a --train_dir of the same name on disks of their own.
TEST_F(CheckpointTest, ShardsThatTheChiefDoesNotSeeAreRefused) {
  const SaveId id{.step = 3, .attempt = 1};
  const auto files = write_shards(id, state(3), {{0, 32}, {32, 112}});
  std::filesystem::remove(scratch_.path() / "checkpoint-00000003.partial-0000000000000001" /
                          files[1].name);
  const auto error = thrown<std::runtime_error>(
      [&] { checkpoints_.commit_shards(id, files, layout_, kConfig, 0); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("model-00002-of-00002.safetensors"));
  EXPECT_THAT(error->what(), HasSubstr("share"));
  checkpoints_.discard_shards(id);
  EXPECT_TRUE(scratch_.names().empty());
}

// The clock of the file system that dated the files decides, and not this machine's. A machine
// whose clock is an hour ahead must not remove what another one is writing.
TEST_F(CheckpointTest, AWriterIsAliveByTheClockThatDatesItsFiles) {
  static_cast<void>(write_shards({.step = 3, .attempt = 1}, state(3), {{0, 32}, {32, 112}}));
  const auto partial = scratch_.path() / "checkpoint-00000003.partial-0000000000000001";
  const auto an_hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& entry : std::filesystem::directory_iterator(partial)) {
    std::filesystem::last_write_time(entry.path(), an_hour_ago);
  }
  std::filesystem::last_write_time(partial, an_hour_ago);
  remove_abandoned(disk_, scratch_.path(), 2, an_hour_ago + std::chrono::minutes(9));
  EXPECT_TRUE(std::filesystem::exists(partial)) << "silent for nine minutes";
  remove_abandoned(disk_, scratch_.path(), 2, an_hour_ago + std::chrono::minutes(11));
  EXPECT_FALSE(std::filesystem::exists(partial)) << "silent for eleven minutes";
}

TEST_F(CheckpointTest, AWriterOfAStepThatIsPastIsNeverWaitedFor) {
  static_cast<void>(write_shards({.step = 3, .attempt = 1}, state(3), {{0, 32}, {32, 112}}));
  remove_abandoned(disk_, scratch_.path(), 3,
                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_TRUE(scratch_.names().empty());
}

TEST_F(CheckpointTest, AShardMayBeWrittenAgain) {
  const SaveId id{.step = 3, .attempt = 1};
  const auto ranges = std::vector<math::Range>{{0, 32}, {32, 112}};
  static_cast<void>(write_shards(id, state(3), ranges));
  checkpoints_.commit_shards(id, write_shards(id, state(3), ranges), layout_, kConfig, 0);
  EXPECT_EQ(loaded_step(), 3U);
}

TEST_F(CheckpointTest, AShardsDescriptionSurvivesItsJson) {
  const auto files = write_shards({.step = 3, .attempt = 1}, state(3), {{0, 32}, {32, 112}});
  for (const ShardFile& file : files) {
    const std::string json = to_json(file);
    const ShardFile read = shard_file_from_json(json);
    EXPECT_EQ(to_json(read), json);
    EXPECT_EQ(read.range, file.range);
    EXPECT_EQ(read.sha256, file.sha256);
    EXPECT_EQ(read.optimizer, file.optimizer);
  }
}

TEST_F(CheckpointTest, AShardsDescriptionIsNotTrusted) {
  const auto files = write_shards({.step = 3, .attempt = 1}, state(3), {{0, 112}});
  const std::string json = to_json(files[0]);
  EXPECT_THROW(static_cast<void>(shard_file_from_json("")), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(shard_file_from_json("[]")), std::invalid_argument);
  const auto refuses = [&json](const std::string& from, const std::string& to) {
    std::string changed = json;
    const auto at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    EXPECT_THROW(static_cast<void>(shard_file_from_json(changed)), std::invalid_argument) << to;
  };
  refuses("model-", "../");
  refuses("[0,112]", "[112,0]");
  refuses("[0,112]", "[0]");
  refuses("[0,112]", "[-1,112]");
  refuses("[0,112]", "[0,1e300]");
  refuses("\"m\"", "\"m\\n\"");
  refuses("\"m\"", "7");
  refuses("\"size_bytes\"", "\"size\"");
  refuses(files[0].header_sha256, "XYZ");
  refuses(files[0].sha256[0], files[0].sha256[0].substr(1));
}

}  // namespace
}  // namespace disttf::roles::test
