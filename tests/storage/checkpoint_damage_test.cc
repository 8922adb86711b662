// Damaged checkpoints, writers that die, and disks that fail.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <system_error>

#include "run/outcome.h"
#include "storage/checkpoint/core/checkpoint_index.h"
#include "tests/storage/checkpoint_fixture.h"

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
    try {
      save(1);
      FAIL() << "saved";
    } catch (const std::system_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("cannot create " + place + "/train/checkpoint-00000001"));
    }
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

}  // namespace
}  // namespace disttf::roles::test
