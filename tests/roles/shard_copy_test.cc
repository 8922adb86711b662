// A copy of a shard that is filled once and then receives every update is bit-identical to it, and
// recognizes the same repeats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

constexpr math::Range kCopied{.begin = 0, .end = 3};

PushId id(std::size_t trainer, std::uint64_t step, std::uint64_t sequence) {
  return {.trainer = trainer, .incarnation = kProcess, .step = step, .sequence = sequence};
}

class ShardCopy : public ::testing::Test {
 protected:
  void make(RunConfig config, Arena arena = {}) {
    config.optimizer.kind = math::OptimizerKind::kAdam;
    config.optimizer.average_decay = 0.5F;  // adds a tensor
    config.ps_replicas = 2;
    shard_.emplace(config, kCopied, /*threads=*/1, std::move(arena));
    copy_.emplace(config, kCopied);
    restore(*shard_, {1, 2, 3}, 0);
  }

  void fill() {
    const std::vector<std::span<const float>> from = shard_->tensors();
    const bool with_previous = shard_->previous().has_value();
    const std::vector<std::span<float>> to = copy_->begin_fill(with_previous);
    ASSERT_EQ(from.size(), to.size());
    for (std::size_t each = 0; each < from.size(); ++each) {
      std::ranges::copy(from[each], to[each].begin());
    }
    copy_->finish_fill(shard_->identity(), with_previous);
    shard_->on_update([this](const ShardUpdate& update) {
      told_ = update.gradient;
      std::ranges::copy(update.gradient, copy_->update_inbox().begin());
      copy_->take_update(
          {.push = update.push, .gradient = copy_->update_inbox(), .trainers = update.trainers});
    });
  }

  void push_async(std::size_t trainer, std::uint64_t sequence) {
    push(*shard_, id(trainer, shard_->step(), sequence), three_values(trainer, sequence));
  }

  void make_step() {
    const std::uint64_t step = shard_->step();
    for (std::size_t trainer = 0; trainer < kTwoTrainers; ++trainer) {
      push(*shard_, id(trainer, step, step + 1), three_values(trainer, step));
    }
  }

  void expect_bit_identical() {
    EXPECT_EQ(copy_->step(), shard_->step());
    EXPECT_EQ(copy_->counters().applied, shard_->counters().applied);
    const auto own = shard_->tensors();
    const auto copied = copy_->tensors();
    ASSERT_EQ(own.size(), copied.size());
    for (std::size_t each = 0; each < own.size(); ++each) {
      EXPECT_EQ(bits_of(own[each]), bits_of(copied[each])) << "tensor " << each;
    }
  }

  std::optional<Shard> shard_;
  std::optional<Shard> copy_;
  std::span<const float> told_;
};

TEST_F(ShardCopy, AsyncMakesTheSameUpdatesInTheSameOrder) {
  make(async_config(kTwoTrainers));
  push_async(0, 1);
  push_async(1, 1);
  fill();
  expect_bit_identical();
  push_async(1, 2);
  push_async(0, 2);
  expect_bit_identical();
}

TEST_F(ShardCopy, AsyncKnowsTheRepeatsFromBeforeAndAfterItWasFilled) {
  make(async_config(kTwoTrainers));
  push_async(0, 1);
  fill();
  push_async(1, 1);
  EXPECT_EQ(copy_->admit(id(0, 0, 1)).verdict, Verdict::kDiscard);
  EXPECT_EQ(copy_->admit(id(1, 0, 1)).verdict, Verdict::kDiscard);
  EXPECT_EQ(copy_->admit(id(1, 0, 2)).verdict, Verdict::kReceive);
}

// The trainer has received an update of another trainer's push, which is about to be repeated.
TEST_F(ShardCopy, AsyncTakesAGradientOfParametersThatItDoesNotHaveYet) {
  make(async_config(kTwoTrainers));
  fill();
  EXPECT_EQ(copy_->admit(id(0, 1, 1)).verdict, Verdict::kReceive);
}

TEST_F(ShardCopy, SyncMakesTheSameSteps) {
  make(sgd_config(kTwoTrainers));
  make_step();
  fill();
  expect_bit_identical();
  make_step();
  make_step();
  expect_bit_identical();
}

// With one gradient and with two. Every other time there is no memory for the update.
TEST_F(ShardCopy, AnUpdateIsWrittenWhereThereIsAPlaceForIt) {
  for (const bool is_sync : {true, false}) {
    for (const bool streams : {false, true}) {
      Values place(kCopied.size());
      bool has_place = true;
      Arena arena;
      arena.streams = streams;
      arena.place_of_update = [&] {
        return has_place ? std::span<float>(place) : std::span<float>();
      };
      make(is_sync ? sgd_config(kTwoTrainers) : async_config(kTwoTrainers), std::move(arena));
      fill();
      for (std::uint64_t round = 1; round <= 4; ++round) {
        has_place = round % 2 == 1;
        if (is_sync) {
          make_step();
        } else {
          push_async(round % kTwoTrainers, round);
        }
        EXPECT_EQ(told_.data() == place.data(), has_place);
        expect_bit_identical();
      }
    }
  }
}

// ---- deferred updates, in memory that the primary keeps

class ShardCopyInMemory : public ShardCopy {
 protected:
  // Every `per_state`th update, from the first on, contains the optimizer's state. Each update has
  // memory of its own.
  void make_and_fill(const RunConfig& config, std::size_t per_state) {
    Arena arena;
    arena.place_of_update = [this, per_state] {
      const bool has_state = told_updates_++ % per_state == 0;
      place_ = std::make_shared<Values>(has_state ? shard_->storage().update_size_with_state()
                                                  : kCopied.size());
      if (has_state) {
        first_.reset();
      }
      return std::span<float>(*place_);
    };
    make(config, std::move(arena));
    fill();
    shard_->on_update([this](const ShardUpdate& update) {
      ShardUpdate told = update;
      told.memory = place_;
      copy_->take_update(told);
      if (first_.expired()) {
        first_ = place_;
      }
      place_.reset();
    });
  }
  // Returns whether the newest update with a state has not been applied yet.
  [[nodiscard]] bool is_put_off() const { return !first_.expired(); }

  std::size_t told_updates_ = 0;
  std::shared_ptr<Values> place_;
  std::weak_ptr<Values> first_;  // of the updates since one with a state
};

TEST_F(ShardCopyInMemory, BitIdenticalHoweverManyAreMadeAtOnce) {
  for (const bool is_sync : {true, false}) {
    for (std::uint64_t updates = 1; updates <= 9; ++updates) {
      told_updates_ = 0;
      make_and_fill(is_sync ? sgd_config(kTwoTrainers) : async_config(kTwoTrainers), 4);
      for (std::uint64_t each = 1; each <= updates; ++each) {
        is_sync ? make_step() : push_async(each % kTwoTrainers, each);
        EXPECT_EQ(copy_->step(), shard_->step());
        EXPECT_TRUE(is_put_off());
      }
      expect_bit_identical();
      EXPECT_FALSE(is_put_off()) << "nothing keeps the memory any more";
      if (is_sync) {
        EXPECT_EQ(bits_of(copy_->previous()->parameters), bits_of(shard_->previous()->parameters));
      }
      // Updates that follow are applied, although none with a state has come since.
      is_sync ? make_step() : push_async(0, updates + 1);
      expect_bit_identical();
    }
  }
}

TEST_F(ShardCopyInMemory, KnowsRepeatsBeforeItHasMadeTheUpdates) {
  make_and_fill(async_config(kTwoTrainers), 4);
  push_async(0, 1);
  push_async(1, 1);
  ASSERT_TRUE(is_put_off());
  EXPECT_EQ(copy_->admit(id(0, 0, 1)).verdict, Verdict::kDiscard);
  EXPECT_EQ(copy_->admit(id(1, 0, 1)).verdict, Verdict::kDiscard);
  EXPECT_EQ(copy_->admit(id(1, 0, 2)).verdict, Verdict::kReceive);
}

// For example, it arrives over a socket since memory was full.
TEST_F(ShardCopyInMemory, AnUpdateWithoutMemoryIsMadeBehindThoseThatWerePutOff) {
  make_and_fill(sgd_config(kTwoTrainers), 4);
  make_step();
  make_step();
  shard_->on_update([this](const ShardUpdate& update) { copy_->take_update(update); });
  make_step();
  EXPECT_FALSE(is_put_off());
  expect_bit_identical();
}

TEST_F(ShardCopyInMemory, AStateThatItIsFilledWithMakesThemNeedless) {
  make_and_fill(sgd_config(kTwoTrainers), 4);
  make_step();
  ASSERT_TRUE(is_put_off());
  fill();
  EXPECT_FALSE(is_put_off());
  expect_bit_identical();
}

// The result, which consists of averages, is of the last step, or of the step at which the run
// stops early.
TEST_F(ShardCopyInMemory, TheResultHasAllThatWasPutOff) {
  for (const bool ends_early : {false, true}) {
    told_updates_ = 0;
    make_and_fill(sgd_config(kTwoTrainers), 100);
    for (std::uint64_t step = 0; step < (ends_early ? 2 : shard_->config().train_steps); ++step) {
      make_step();
    }
    if (ends_early) {
      shard_->conclude();
      copy_->conclude();
    }
    copy_->catch_up();
    const Answer result = copy_->answer(0);
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(bits_of(result.parameters), bits_of(shard_->answer(0).parameters));
    EXPECT_EQ(bits_of(result.parameters), bits_of(shard_->tensors().at(3)))
        << "the averages, behind the parameters and the two of adam";
  }
}

// The two may have different gradients of the current step: those were not answered.
TEST_F(ShardCopy, SyncAsksAgainForTheGradientsOfTheStepThatIsBeingMade) {
  make(sgd_config(kTwoTrainers));
  make_step();
  push(*shard_, id(0, 1, 2), three_values(0, 1));
  fill();
  EXPECT_EQ(copy_->admit(id(0, 1, 2)).verdict, Verdict::kReceive);
  EXPECT_EQ(copy_->admit(id(1, 0, 1)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(copy_->answerable(1)) << "its gradient is in the parameters";
}

TEST_F(ShardCopy, SyncHasTheParametersOfTheStepBefore) {
  make(sgd_config(kTwoTrainers));
  make_step();
  fill();
  ASSERT_TRUE(copy_->previous().has_value());
  EXPECT_EQ(values_of(copy_->previous()->parameters), (Values{1, 2, 3}));
  make_step();
  EXPECT_EQ(bits_of(copy_->previous()->parameters), bits_of(shard_->previous()->parameters));
}

TEST_F(ShardCopy, BackupWorkersLateGradientIsNotAddedByTheCopy) {
  make(backup_config(kTwoTrainers, 1));
  fill();
  push(*shard_, id(1, 0, 1), three_values(1, 0));
  expect_bit_identical();
  EXPECT_EQ(copy_->admit(id(0, 0, 1)).verdict, Verdict::kDiscard);
}

// Its answer was lost with the primary.
TEST_F(ShardCopy, ARepeatIsAnsweredWithWhetherItWasUsed) {
  make(backup_config(kTwoTrainers, 1));
  push(*shard_, id(1, 0, 1), three_values(1, 0));
  fill();
  push(*shard_, id(0, 1, 1), three_values(0, 1));
  EXPECT_EQ(copy_->admit(id(0, 1, 1)).verdict, Verdict::kDiscard);
  EXPECT_FALSE(copy_->answer(0).dropped);
  EXPECT_EQ(copy_->admit(id(1, 1, 2)).verdict, Verdict::kDiscard);
  EXPECT_TRUE(copy_->answer(1).dropped);
}

TEST_F(ShardCopy, ACopyThatIsFilledLaterKnowsWhatWasUsedBefore) {
  make(backup_config(kTwoTrainers, 1));
  push(*shard_, id(1, 0, 1), three_values(1, 0));
  push(*shard_, id(0, 1, 1), three_values(0, 1));
  fill();
  push(*shard_, id(0, 2, 2), three_values(0, 2));
  EXPECT_EQ(copy_->admit(id(1, 0, 1)).verdict, Verdict::kDiscard);
  EXPECT_FALSE(copy_->answer(1).dropped);
}

}  // namespace
}  // namespace disttf::roles
