// Damaged checkpoints, writers that die, and disks that fail.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <system_error>

#include "run/outcome.h"
#include "storage/checkpoint/core/checkpoint_index.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "tests/data/simulated_file_system.h"
#include "tests/storage/checkpoint_fixture.h"
#include "tests/support/thrown.h"

namespace disttf::roles::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class CheckpointDamageTest : public CheckpointTest {
 protected:
  // Writes in place: some file systems flush a file to disk that is truncated and written again.
  static void write_byte(const std::filesystem::path& path, std::size_t offset, std::uint8_t byte) {
    std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
    stream.exceptions(std::ios::badbit | std::ios::failbit);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(static_cast<char>(byte));
  }

  void expect_the_one_before(const std::filesystem::path& path, const std::string& what) {
    ASSERT_EQ(loaded_step(), 1U) << path << what;
    ASSERT_EQ(warnings_.size(), 1U);
    ASSERT_THAT(warnings_.front(), HasSubstr("checkpoint-00000002"));
  }

  void expect_every_flip_is_found(const std::filesystem::path& path) {
    const data::test::Bytes whole = data::test::read(path);
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      const std::uint8_t byte = whole[bit / 8];
      write_byte(path, bit / 8, byte ^ static_cast<std::uint8_t>(1U << bit % 8));
      ASSERT_NO_FATAL_FAILURE(expect_the_one_before(path, ", bit " + std::to_string(bit)));
      write_byte(path, bit / 8, byte);
    }
    ASSERT_EQ(loaded_step(), 2U);
  }

  void expect_every_truncation_is_found(const std::filesystem::path& path) {
    for (auto size = std::filesystem::file_size(path); size > 0; --size) {
      std::filesystem::resize_file(path, size - 1);
      ASSERT_NO_FATAL_FAILURE(expect_the_one_before(path, " of " + std::to_string(size - 1)));
    }
  }

  // A small model, so that every bit can be changed.
  void save_two_small_ones() {
    layout_ = {};
    layout_.add("w", {3});
    const auto small = [](std::uint64_t step) {
      TrainingState state;
      state.step = step;
      state.parameters = math::AlignedVector(16);
      state.optimizer.push_back({.name = "m", .values = math::AlignedVector(16)});
      return state;
    };
    for (const std::uint64_t step : {1U, 2U})
      checkpoints_.save(1, small(step), layout_, kConfig, 0);
  }
};

TEST_F(CheckpointDamageTest, EveryFlippedBitIsFound) {
  save_two_small_ones();
  expect_every_flip_is_found(file("checkpoint-00000002", kShard));
  expect_every_flip_is_found(file("checkpoint-00000002", kIndex));
}

TEST_F(CheckpointDamageTest, EveryTruncationIsFound) {
  save_two_small_ones();
  expect_every_truncation_is_found(file("checkpoint-00000002", kShard));
  save_two_small_ones();
  expect_every_truncation_is_found(file("checkpoint-00000002-2", kIndex));
}

TEST_F(CheckpointDamageTest, BytesThatFollowAreFound) {
  save(1);
  save(2);
  for (const char* name : {kShard, kIndex}) {
    change(file("checkpoint-00000002", name), [](auto& bytes) { bytes.push_back(' '); });
    EXPECT_EQ(loaded_step(), 1U);
    change(file("checkpoint-00000002", name), [](auto& bytes) { bytes.pop_back(); });
  }
  EXPECT_EQ(loaded_step(), 2U);
}

TEST_F(CheckpointDamageTest, FilesThatAreMissingOrNoFilesAreFound) {
  for (std::uint64_t step = 1; step <= 5; ++step) save(step);
  std::filesystem::remove(file("checkpoint-00000005", kShard));
  std::filesystem::remove(file("checkpoint-00000004", kIndex));
  std::filesystem::remove(file("checkpoint-00000003", kShard));
  std::filesystem::create_directory(file("checkpoint-00000003", kShard));
  std::filesystem::remove_all(scratch_.path() / "checkpoint-00000002");
  data::test::write(scratch_.path() / "checkpoint-00000002", data::test::bytes_of("a file"));
  EXPECT_EQ(loaded_step(), 1U);
  EXPECT_EQ(warnings_.size(), 4U);
}

TEST_F(CheckpointDamageTest, ATensorThatIsDamagedIsNamed) {
  save(1);
  save(2);
  change(file("checkpoint-00000002", kShard), [](auto& bytes) { bytes.back() ^= 1U; });
  EXPECT_EQ(loaded_step(), 1U);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_.front(), HasSubstr("sm_b/v in "));
  EXPECT_THAT(warnings_.front(), HasSubstr(kShard));
  EXPECT_THAT(warnings_.front(), HasSubstr(" is damaged: its SHA-256 is "));
}

TEST_F(CheckpointDamageTest, AFileOfAnotherCheckpointIsFound) {
  save(1);
  save(2);
  std::filesystem::copy_file(file("checkpoint-00000001", kShard),
                             file("checkpoint-00000002", kShard),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(loaded_step(), 1U);
}

TEST_F(CheckpointDamageTest, ShardsWithoutTheirIndexAreNoCheckpoint) {
  save(1);
  static_cast<void>(write_shards({.step = 2, .attempt = 1}, state(2), {{0, 32}, {32, 112}}));
  EXPECT_EQ(loaded_step(), 1U);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CheckpointDamageTest, NothingLeftAnywhereIsAWholeCheckpointAfterAKill) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::uint64_t step = 1;; ++step) {
      save(step, 2);
      if (::write(pipe[1], "x", 1) != 1) ::_exit(1);
    }
  }
  ASSERT_GT(child, 0);
  // The writer is killed somewhere in the fourth save or a later one.
  std::array<char, 3> signs{};
  for (char& sign : signs) ASSERT_EQ(::read(pipe[0], &sign, 1), 1);
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ::close(pipe[0]);
  ::close(pipe[1]);
  const auto loaded = load();
  ASSERT_TRUE(loaded);
  EXPECT_GE(loaded->state.step, 3U);
  expect_bit_identical(loaded->state, state(loaded->state.step));
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
  save(loaded->state.step + 1'000'000, 1);
  EXPECT_EQ(scratch_.names().size(), 1U) << "leftovers of the killed writer";
}

TEST_F(CheckpointDamageTest, WhatAKilledWriterLeftIsRemovedOnceItsStepIsPast) {
  static_cast<void>(write_shards({.step = 2, .attempt = 1}, state(2), {{0, 32}, {32, 112}}));
  static_cast<void>(write_shards({.step = 9, .attempt = 0xab}, state(9), {{0, 32}, {32, 112}}));
  save(2);
  EXPECT_THAT(scratch_.names(),
              ElementsAre("checkpoint-00000002", "checkpoint-00000009.partial-00000000000000ab"));
}

TEST_F(CheckpointDamageTest, WhatAKilledWriterLeftIsRemovedAfterSomeTime) {
  static_cast<void>(write_shards({.step = 9, .attempt = 2}, state(9), {{0, 112}}));
  static_cast<void>(write_shards({.step = 8, .attempt = 1}, state(8), {{0, 112}}));
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(11);
  const auto partial = scratch_.path() / "checkpoint-00000008.partial-0000000000000001";
  std::filesystem::last_write_time(partial / kShard, old);
  std::filesystem::last_write_time(partial, old);
  // Only the directory is old here: a large file in it is still being written.
  std::filesystem::last_write_time(scratch_.path() / "checkpoint-00000009.partial-0000000000000002",
                                   old);
  save(2);
  EXPECT_THAT(scratch_.names(),
              ElementsAre("checkpoint-00000002", "checkpoint-00000009.partial-0000000000000002"));
}

TEST_F(CheckpointDamageTest, StrayFilesOfAKilledPsDoNotGetIntoTheCheckpoint) {
  const SaveId id{.step = 3, .attempt = 1};
  const auto files = write_shards(id, state(3), {{0, 112}});
  data::test::write(scratch_.path() / "checkpoint-00000003.partial-0000000000000001" /
                        (std::string(kShard) + ".disttf-AbCdEf"),
                    data::test::bytes_of("half"));
  checkpoints_.commit_shards(id, files, layout_, kConfig, 0);
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(scratch_.path() / "checkpoint-00000003")) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, UnorderedElementsAre(kShard, kIndex));
}

// A limit on the size of files stands for a full disk: write() fails midway with EFBIG as it would
// with ENOSPC.
TEST_F(CheckpointDamageTest, AFullDiskIsASentenceAndTheOldCheckpointStays) {
  save(1);
  EXPECT_TRUE(data::test::in_child([&] {
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0 || ::signal(SIGXFSZ, SIG_IGN) == SIG_ERR) {
      return false;
    }
    try {
      save(2, 1);
      return false;
    } catch (const std::system_error& error) {
      return error.code() == std::errc::file_too_large &&
             std::string_view(error.what()).find(scratch_.path().string()) !=
                 std::string_view::npos;
    }
  }));
  EXPECT_THAT(scratch_.names(), ElementsAre("checkpoint-00000001"));
  EXPECT_EQ(loaded_step(), 1U);
}

TEST_F(CheckpointDamageTest, ADirectoryThatCannotBeMadeIsASentence) {
  data::test::write(scratch_.path() / "file", data::test::bytes_of("x"));
  for (const std::string& place : {(scratch_.path() / "file").string(), std::string("/proc")}) {
    checkpoints_ = CheckpointStore(disk_, place + "/train");
    EXPECT_THAT(sentence_of<std::system_error>([&] { save(1); }),
                HasSubstr("cannot create " + place + "/train/checkpoint-00000001"));
  }
}

TEST_F(CheckpointDamageTest, ADirectoryThatIsAFileCannotBeRead) {
  data::test::write(scratch_.path() / "file", data::test::bytes_of("x"));
  checkpoints_ = CheckpointStore(disk_, scratch_.path() / "file");
  EXPECT_THROW(static_cast<void>(load()), std::system_error);
}

TEST_F(CheckpointDamageTest, AWriterThatCannotReadTheConfigurationChangesNothing) {
  save(1);
  EXPECT_THROW(checkpoints_.save(1, state(2), layout_, "no json", 1), std::exception);
  EXPECT_THAT(scratch_.names(), ElementsAre("checkpoint-00000001"));
}

// Checkpoints on a failing disk. The power is cut at every operation of a save, with every subset
// of what was not synced; and every operation fails once.

using data::test::DiskState;
using data::test::PowerCut;
using data::test::SimulatedFileSystem;

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
