// Checkpoints on a failing disk. The power is cut at every operation of a save, with every subset
// of what was not synced; and every operation fails once.
#include <gmock/gmock.h>

#include <functional>
#include <system_error>

#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "tests/data/simulated_file_system.h"
#include "tests/storage/checkpoint_fixture.h"

namespace disttf::roles::test {
namespace {

using data::test::DiskState;
using data::test::PowerCut;
using data::test::SimulatedFileSystem;
using testing::HasSubstr;

constexpr const char* kTrainDir = "/run/train";

// What a test does with a store to save step `newest`.
using Save = std::function<void(CheckpointStore&)>;

class CheckpointPowerCutTest : public CheckpointTest {
 protected:
  CheckpointPowerCutTest() {
    layout_ = {};
    layout_.add("w", {5});
    layout_.add("b", {2});
  }

  void save_on(data::FileSystem& disk, std::uint64_t step, std::size_t keep = 0) {
    CheckpointStore store(disk, kTrainDir);
    save_in(store, step, keep);
  }
  void save_in(CheckpointStore& store, std::uint64_t step, std::size_t keep = 0) {
    store.save(++attempts_, state(step, {"m"}), layout_, kConfig, keep);
  }
  // As two ps save it.
  void save_sharded_in(CheckpointStore& store, std::uint64_t step, std::size_t keep) {
    const SaveId id{.step = step, .attempt = ++attempts_};
    const TrainingState all = state(step, {"m"});
    std::vector<ShardFile> files;
    files.push_back(store.write_shard(id, 0, 2, view(all, {0, 16}), layout_));
    files.push_back(store.write_shard(id, 1, 2, view(all, {16, 32}), layout_));
    store.commit_shards(id, files, layout_, kConfig, keep);
  }
  // Returns a disk on which these steps were saved and everything was synced.
  [[nodiscard]] DiskState saved(const std::vector<std::uint64_t>& steps) {
    SimulatedFileSystem disk;
    for (const std::uint64_t step : steps) save_on(disk, step);
    return disk.state().after_power_cut(disk.state().outcomes() - 1);
  }

  // Returns the step of the newest checkpoint, which must be intact; 0: none.
  [[nodiscard]] std::uint64_t found_on(data::FileSystem& disk) {
    const auto loaded = CheckpointStore(disk, kTrainDir).load_newest(layout_, [](const auto&) {});
    if (!loaded) return 0;
    expect_bit_identical(loaded->state, state(loaded->state.step, {"m"}));
    return loaded->state.step;
  }

  // Checks, for every subset that may be durable, that at least step `oldest` is found and a save
  // succeeds.
  void expect_after_any_power_cut(const DiskState& state, std::uint64_t oldest,
                                  std::uint64_t newest, const std::string& when) {
    const std::size_t outcomes = state.outcomes();
    ASSERT_LT(outcomes, 100'000U) << when;
    for (std::size_t outcome = 0; outcome < outcomes; ++outcome) {
      SimulatedFileSystem left(state.after_power_cut(outcome));
      const std::uint64_t step = found_on(left);
      ASSERT_GE(step, oldest) << when << ", outcome " << outcome << " of " << outcomes;
      ASSERT_LE(step, newest) << when;
      if (outcome % 16 == 0) {
        save_on(left, newest + 1, 2);
        ASSERT_EQ(found_on(left), newest + 1) << when << ", outcome " << outcome;
      }
    }
    seen_ += outcomes;
  }

  // Runs `save` on copies of the disk `before`, whose newest step is `oldest` (0: none), and cuts
  // the power at each of its operations.
  void cut_power_everywhere(const DiskState& before, std::uint64_t oldest, std::uint64_t newest,
                            const Save& save) {
    bool is_done = false;
    for (std::size_t at = 0; !is_done; ++at) {
      SimulatedFileSystem disk(before);
      disk.cut_power_at(at);
      try {
        CheckpointStore store(disk, kTrainDir);
        save(store);
        is_done = disk.has_power();
      } catch (const PowerCut&) {
      }
      const std::string when = "cut at operation " + std::to_string(at);
      ASSERT_NO_FATAL_FAILURE(
          expect_after_any_power_cut(disk.state(), is_done ? newest : oldest, newest, when));
      // The process was killed but the machine continues: the next process uses what was left.
      SimulatedFileSystem killed(disk.state());
      ASSERT_GE(found_on(killed), is_done ? newest : oldest) << when;
      save_on(killed, newest + 1);
      ASSERT_NO_FATAL_FAILURE(expect_after_any_power_cut(killed.state(), newest + 1, newest + 1,
                                                         when + ", then saved by the next one"));
      ASSERT_LT(at, 1000U);
    }
  }

  // The same with so many operations in a row that fail. The power is cut right after the save.
  void fail_everywhere(const DiskState& before, std::uint64_t oldest, std::uint64_t newest,
                       std::errc error, const Save& save, std::size_t times = 1) {
    bool is_hit = true;
    for (std::size_t at = 0; is_hit; ++at) {
      SimulatedFileSystem disk(before);
      disk.fail_at(at, error, times);
      bool is_saved = true;
      try {
        CheckpointStore store(disk, kTrainDir);
        save(store);
      } catch (const std::system_error& failed) {
        is_saved = false;
        EXPECT_EQ(failed.code(), error) << failed.what();
        EXPECT_THAT(failed.what(), HasSubstr(" /")) << "names no path";
      }
      is_hit = disk.operations() > at;
      const std::string when = "failed at operation " + std::to_string(at);
      ASSERT_NO_FATAL_FAILURE(
          expect_after_any_power_cut(disk.state(), is_saved ? newest : oldest, newest, when));
      // The next save succeeds, whatever this one has left.
      disk.stop_failing();
      save_on(disk, newest + 1);
      ASSERT_NO_FATAL_FAILURE(
          expect_after_any_power_cut(disk.state(), newest + 1, newest + 1, when + ", tried again"));
    }
  }

  std::size_t seen_ = 0;  // states after a power cut
};

TEST_F(CheckpointPowerCutTest, TheFirstSaveIsThereOnceItIsReported) {
  cut_power_everywhere({}, 0, 1, [this](CheckpointStore& store) { save_in(store, 1); });
  EXPECT_GT(seen_, 50U);
}

TEST_F(CheckpointPowerCutTest, TheOneBeforeIsThereUntilTheNextIs) {
  cut_power_everywhere(saved({1}), 1, 2, [this](CheckpointStore& store) { save_in(store, 2); });
}

TEST_F(CheckpointPowerCutTest, WhatIsRemovedIsReplacedFirst) {
  cut_power_everywhere(saved({1, 2}), 2, 3,
                       [this](CheckpointStore& store) { save_in(store, 3, 1); });
  EXPECT_GT(seen_, 100U);
}

TEST_F(CheckpointPowerCutTest, AStepThatIsSavedAgainIsAlwaysThere) {
  cut_power_everywhere(saved({1, 2}), 2, 2, [this](CheckpointStore& store) { save_in(store, 2); });
}

TEST_F(CheckpointPowerCutTest, ShardsAreWholeTogetherOrNot) {
  cut_power_everywhere(saved({1}), 1, 2,
                       [this](CheckpointStore& store) { save_sharded_in(store, 2, 1); });
}

TEST_F(CheckpointPowerCutTest, ASaveThatADiskRefusesIsNotReported) {
  const auto save_first = [this](CheckpointStore& store) { save_in(store, 1); };
  for (const auto error : {std::errc::io_error, std::errc::no_space_on_device}) {
    fail_everywhere({}, 0, 1, error, save_first);
  }
  // Removing the partial save fails as well.
  fail_everywhere({}, 0, 1, std::errc::io_error, save_first, 3);
  fail_everywhere(saved({1, 2}), 2, 3, std::errc::no_space_on_device,
                  [this](CheckpointStore& store) { save_in(store, 3, 1); });
  fail_everywhere(saved({1}), 1, 2, std::errc::io_error,
                  [this](CheckpointStore& store) { save_sharded_in(store, 2, 1); });
}

// All but a few of a run's checkpoints may be corrupted.
TEST_F(CheckpointPowerCutTest, OneThatRotsIsLeftOut) {
  SimulatedFileSystem disk(saved({1, 2, 3}));
  const std::filesystem::path train_dir(kTrainDir);
  disk.rot(train_dir / "checkpoint-00000003" / kShard);
  EXPECT_EQ(found_on(disk), 2U);
  disk.rot(train_dir / "checkpoint-00000002" / kIndex);
  EXPECT_EQ(found_on(disk), 1U);
  save_on(disk, 4, 2);
  EXPECT_EQ(found_on(disk), 4U);
}

}  // namespace
}  // namespace disttf::roles::test
