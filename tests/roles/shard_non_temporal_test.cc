// Trainers read the same parameters whether they were written with non-temporal stores
// (math/non_temporal_stores.h) or normal ones.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "math/aligned.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

// Several pieces of a non-temporal update.
constexpr math::Range kStreamedRange{.begin = 0, .end = 5000};

Values streamed_gradient(std::size_t trainer, std::uint64_t step) {
  Values values(kStreamedRange.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 7 + trainer * 13 + step * 29) % 101) - 50.0F;
  }
  return values;
}

class ShardNonTemporalStores : public testing::TestWithParam<bool> {
 protected:
  static Shard shard_of(const RunConfig& config, bool streams) {
    const auto memory =
        std::make_shared<math::AlignedVector>(ShardStorage::arena_size(config, kStreamedRange));
    return Shard(config, kStreamedRange, 1,
                 {.floats = memory->span(), .owner = memory, .streams = streams});
  }
  [[nodiscard]] RunConfig config() const {
    RunConfig config = GetParam() ? sgd_config(2) : async_config(2);
    config.optimizer = {.kind = math::OptimizerKind::kAdam, .learning_rate = 0.01F};
    return config;
  }
};

TEST_P(ShardNonTemporalStores, AnswersBitIdentically) {
  std::array shards = {shard_of(config(), true), shard_of(config(), false)};
  for (std::uint64_t step = 0; step < 4; ++step) {
    for (std::size_t trainer = 0; trainer < 2; ++trainer) {
      const PushId id{.trainer = trainer,
                      .incarnation = kProcess,
                      .step = shards[0].step(),
                      .sequence = step + 1};
      for (Shard& shard : shards) {
        push(shard, id, streamed_gradient(trainer, step));
      }
    }
    for (std::size_t trainer = 0; trainer < 2; ++trainer) {
      EXPECT_EQ(bits_of(shards[0].answer(trainer).parameters),
                bits_of(shards[1].answer(trainer).parameters));
    }
  }
  EXPECT_GT(shards[0].step(), 0U);
}

// Until the copy takes over, only its own later updates read its updates; then it answers trainers.
TEST_P(ShardNonTemporalStores, OfACopyThatTakesOverAnswersBitIdentically) {
  std::array shards = {shard_of(config(), true), shard_of(config(), false)};
  for (Shard& shard : shards) {
    const Values told = streamed_gradient(0, 0);
    const std::vector<std::uint64_t> both = {GetParam() ? 3U : 1U};
    shard.take_update({.push = {.trainer = 0, .incarnation = kProcess, .sequence = 1},
                       .gradient = told,
                       .trainers = both});
    for (std::size_t trainer = 0; trainer < 2; ++trainer) {
      push(shard,
           {.trainer = trainer, .incarnation = kProcess, .step = shard.step(), .sequence = 2},
           streamed_gradient(trainer, 1));
    }
  }
  EXPECT_EQ(bits_of(shards[0].answer(1).parameters), bits_of(shards[1].answer(1).parameters));
}

INSTANTIATE_TEST_SUITE_P(Modes, ShardNonTemporalStores, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "sync" : "async"; });

}  // namespace
}  // namespace disttf::roles
