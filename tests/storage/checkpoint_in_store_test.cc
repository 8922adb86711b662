// Checkpoints in an object store whose client is killed at any operation, before or after it takes
// effect. To the store, a killed client is one that sends nothing more.
#include <gmock/gmock.h>

#include <memory>
#include <system_error>

#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "storage/store/core/object_file_system.h"
#include "tests/storage/checkpoint_fixture.h"
#include "tests/storage/memory_store.h"

namespace disttf::roles::test {
namespace {

using testing::ElementsAre;

constexpr const char* kBucketDir = "s3://bucket/run";

class CheckpointInStoreTest : public CheckpointTest {
 protected:
  CheckpointInStoreTest() {
    layout_ = {};
    layout_.add("w", {5});
    layout_.add("b", {2});
  }

  void save_in_store(std::uint64_t step, std::size_t keep = 0) {
    in_store_.save(++attempts_, state(step, {"m"}), layout_, kConfig, keep);
  }
  void save_by_two(std::uint64_t step, std::size_t keep) {
    const SaveId id{.step = step, .attempt = ++attempts_};
    const TrainingState all = state(step, {"m"});
    std::vector<ShardFile> files;
    files.push_back(in_store_.write_shard(id, 0, 2, view(all, {0, 16}), layout_));
    files.push_back(in_store_.write_shard(id, 1, 2, view(all, {16, 32}), layout_));
    in_store_.commit_shards(id, files, layout_, kConfig, keep);
  }
  // Returns the step of the newest checkpoint, which must be intact; 0: none.
  std::uint64_t found() {
    const auto loaded = in_store_.load_newest(layout_, [](const auto&) {});
    if (!loaded) return 0;
    expect_bit_identical(loaded->state, state(loaded->state.step, {"m"}));
    return loaded->state.step;
  }

  // Runs `save` of step 3 after steps 1 and 2, once for each operation, with every operation from
  // that one on failing, before or `after` it takes effect. Returns the number of operations.
  template <typename Save>
  std::size_t kill_everywhere(bool after, const Save& save) {
    for (std::size_t at = 1;; ++at) {
      store_->objects.clear();
      store_->before = store_->after = nullptr;
      save_in_store(1);
      save_in_store(2);
      const std::size_t first = store_->operations;
      bool is_dead = false;
      const auto die = [&is_dead, first, at](std::size_t operation) {
        is_dead = is_dead || operation >= first + at;
        if (is_dead) throw std::system_error(StoreError::kAway, "killed");
      };
      (after ? store_->after : store_->before) = die;
      if (after) {
        store_->before = [&is_dead](std::size_t) {
          if (is_dead) throw std::system_error(StoreError::kAway, "killed");
        };
      }
      bool is_saved = true;
      try {
        save();
      } catch (const std::exception&) {
        is_saved = false;
      }
      store_->before = store_->after = nullptr;
      const std::uint64_t step = found();
      EXPECT_GE(step, is_saved ? 3U : 2U) << "killed at operation " << at;
      // The next process saves, and what was left does not get in its way.
      save_in_store(4, 1);
      EXPECT_EQ(found(), 4U) << "killed at operation " << at;
      expect_nothing_but_checkpoint_4(at);
      if (!is_dead) return at;
    }
  }

  void expect_nothing_but_checkpoint_4(std::size_t at) {
    std::error_code error;
    EXPECT_THAT(files_.names_in(kBucketDir, error), ElementsAre("checkpoint-00000004"))
        << "killed at operation " << at;
    // The checkpoint's two files and its name.
    EXPECT_EQ(store_->objects.size(), 3U) << "killed at operation " << at;
  }

  const std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  ObjectFileSystem files_{store_, "s3://bucket"};
  CheckpointStore in_store_{files_, kBucketDir};
};

TEST_F(CheckpointInStoreTest, IsSavedAndFound) {
  save_in_store(7);
  EXPECT_EQ(found(), 7U);
  EXPECT_TRUE(CheckpointReader(files_, "s3://bucket/run/checkpoint-00000007").verify().empty());
}

TEST_F(CheckpointInStoreTest, OfManyTheNewestStay) {
  for (std::uint64_t step = 1; step <= 5; ++step) save_in_store(step, 2);
  std::error_code error;
  EXPECT_THAT(files_.names_in(kBucketDir, error),
              ElementsAre("checkpoint-00000004", "checkpoint-00000005"));
  EXPECT_EQ(store_->objects.size(), 6U);
}

TEST_F(CheckpointInStoreTest, AStepThatIsSavedAgainIsARevision) {
  save_in_store(5);
  save_in_store(5);
  std::error_code error;
  EXPECT_THAT(files_.names_in(kBucketDir, error), ElementsAre("checkpoint-00000005-2"));
  EXPECT_EQ(found(), 5U);
}

TEST_F(CheckpointInStoreTest, AWriterThatIsKilledBeforeAnyOperationLeavesTheNewestWholeOne) {
  EXPECT_GE(kill_everywhere(false, [&] { save_in_store(3, 1); }), 15U);
}

TEST_F(CheckpointInStoreTest, AWriterThatIsKilledAfterAnyOperationLeavesTheNewestWholeOne) {
  EXPECT_GE(kill_everywhere(true, [&] { save_in_store(3, 1); }), 15U);
}

TEST_F(CheckpointInStoreTest, SoDoTwoWhoSaveTogether) {
  EXPECT_GE(kill_everywhere(false, [&] { save_by_two(3, 1); }), 15U);
  EXPECT_GE(kill_everywhere(true, [&] { save_by_two(3, 1); }), 15U);
}

TEST_F(CheckpointInStoreTest, WhatAKilledWriterHasLeftIsRemovedByAge) {
  store_->before = [this](std::size_t) {
    if (store_->objects.size() == 1) throw std::system_error(StoreError::kAway, "killed");
  };
  EXPECT_THROW(save_in_store(9), std::runtime_error);
  store_->before = nullptr;
  ASSERT_EQ(store_->objects.size(), 1U);
  save_in_store(5);
  EXPECT_EQ(store_->objects.size(), 4U) << "it may still be being written";
  store_->clock += std::chrono::minutes(11);
  save_in_store(6);
  EXPECT_EQ(store_->objects.size(), 6U) << "5 and 6";
  EXPECT_EQ(found(), 6U);
}

// To load an older checkpoint instead, or none, would lose the run's progress.
TEST_F(CheckpointInStoreTest, AStoreThatIsAwayWhileReadingIsNoDamage) {
  save_in_store(1);
  save_in_store(2);
  const std::size_t first = store_->operations;
  std::size_t tried = 0;
  for (bool is_hit = true; is_hit; ++tried) {
    is_hit = false;
    const std::size_t now = store_->operations;
    store_->before = [&, now](std::size_t operation) {
      if (operation != now + tried + 1) return;
      is_hit = true;
      throw std::system_error(StoreError::kAway, "test");
    };
    if (tried > 20) break;
    try {
      const std::uint64_t step = found();
      EXPECT_EQ(step, 2U);
      EXPECT_FALSE(is_hit) << "the failure of operation " << tried << " was passed over";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::resource_unavailable_try_again);
    }
  }
  EXPECT_GT(store_->operations, first + 5);
}

TEST_F(CheckpointInStoreTest, OneThatIsDamagedIsLeftOut) {
  save_in_store(1);
  save_in_store(2);
  for (auto& [key, bytes] : store_->objects) {
    if (key.starts_with("run/checkpoint-00000002.partial") && key.ends_with(".safetensors")) {
      bytes[bytes.size() - 1] ^= 1;
    }
  }
  EXPECT_EQ(found(), 1U);
}

}  // namespace
}  // namespace disttf::roles::test
