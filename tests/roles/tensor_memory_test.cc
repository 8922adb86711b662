// The memory for a range's updates, as its primary takes it and its backup reckons it: each by a
// function of its own.
#include "roles/process/tensor_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "net/wire/messages.h"
#include "net/wire/replication.h"
#include "roles/ps/core/shard.h"
#include "tests/roles/run_configs.h"

namespace disttf::roles {
namespace {

struct Range {
  bool sync = true;
  std::size_t trainers = 2;
  std::size_t floats = 0;
  std::size_t updates = 0;  // that lie in memory at once
};

std::string name_of(const testing::TestParamInfo<Range>& info) {
  const Range& range = info.param;
  return (range.sync ? "sync_" : "async_") + std::to_string(range.trainers) + "_trainers_" +
         std::to_string(range.floats) + "_floats";
}

class UpdateMemory : public testing::TestWithParam<Range> {
 protected:
  UpdateMemory() {
    config_.trainers = GetParam().trainers;
    config_.sync_replicas = GetParam().sync;
  }

  RunConfig config_ = base_config();
};

TEST(TensorMemory, IsTakenForNobodyWhoIsNotOnThisMachine) {
  bool has_asked = false;
  std::vector<std::byte> answer;
  const auto handover = net::PendingHandover::begin(
      {.rendezvous = 0x0123'4567'89AB'CDEF, .token = 1, .size = 64},
      [&has_asked] {
        has_asked = true;
        return net::InPlaceTerms{.memory = net::ParameterMemory::create(4096, 0), .most = 4096};
      },
      answer);
  EXPECT_EQ(handover, nullptr);
  EXPECT_TRUE(answer.empty());
  EXPECT_FALSE(has_asked) << "there is nobody to hand it to";
}

TEST_P(UpdateMemory, IsAsLargeForTheBackupAsForThePrimary) {
  const Range& range = GetParam();
  const std::unique_ptr<net::BodySlots> slots = make_update_slots({}, config_, range.floats);
  if (range.updates == 0) {
    EXPECT_EQ(slots, nullptr);
    return;
  }
  ASSERT_NE(slots, nullptr);
  const std::size_t whole_pages = net::whole_pages(range.floats * sizeof(float)) / sizeof(float);
  const net::InPlaceTerms terms{.memory = make_parameter_memory({}, whole_pages, range.trainers),
                                .slot = slot_of_primary(range.trainers),
                                .least = least_of_primary(config_, range.floats),
                                .most = most_of_primary(config_, range.floats)};
  // What the two say to each other.
  std::vector<std::byte> answer;
  const auto handover = net::PendingHandover::begin(
      slots->offer(), [&terms] { return terms; }, answer);
  ASSERT_NE(handover, nullptr);
  ASSERT_TRUE(slots->answered(answer));
  const std::unique_ptr<net::InPlaceBodies> bodies = handover->finish(answer);
  ASSERT_NE(bodies, nullptr);
  ASSERT_FALSE(slots->answered(answer));
  ASSERT_TRUE(slots->has_agreed());

  // The largest body that there is fits into each slot, and the backup, which is awake, sees all of
  // them, and their headers.
  terms.memory->set_asleep(false);
  const std::vector<std::byte> body(net::padded_update_head_bytes(range.trainers) +
                                    range.floats * sizeof(float));
  for (std::size_t update = 1; update <= range.updates; ++update) {
    net::FrameHeader header{.kind = net::FrameKind::kUpdate, .request_id = update};
    ASSERT_EQ(slots->leave(header, body, {}), net::Left::kHeader) << update;
    net::FrameHeader taken;
    ASSERT_TRUE(bodies->has_request());
    ASSERT_FALSE(bodies->take_request(taken));
    EXPECT_EQ(taken, header);
    const auto found = bodies->find(header);
    ASSERT_TRUE(found) << update;
    EXPECT_EQ(found->bytes.size(), body.size());
  }
  net::FrameHeader header{.kind = net::FrameKind::kUpdate, .request_id = range.updates + 1};
  EXPECT_EQ(slots->leave(header, body, {}), net::Left::kNot) << "there are more than documented";
}

INSTANTIATE_TEST_SUITE_P(
    Ranges, UpdateMemory,
    testing::Values(Range{.sync = true, .trainers = 2, .floats = 0, .updates = 2},
                    Range{.sync = true, .trainers = 65, .floats = 79'510, .updates = 2},
                    Range{.sync = true, .trainers = 2, .floats = 10'000'000, .updates = 1},
                    Range{.sync = true, .trainers = 2, .floats = 70'000'000, .updates = 0},
                    Range{.sync = false, .trainers = 1, .floats = 1000, .updates = 1},
                    Range{.sync = false, .trainers = 3, .floats = 1000, .updates = 3},
                    Range{.sync = false, .trainers = 100, .floats = 1000, .updates = 4}),
    name_of);

// With averages, too, and whoever is answered from a copy of its own.
TEST(TensorMemory, ATrainerMapsAllThatAPsOfItsRunMayHave) {
  const math::Range range{.begin = 0, .end = 79'510};
  for (const bool sync : {true, false}) {
    for (const float average_decay : {0.0F, 0.9F}) {
      for (const std::size_t trainers : {1U, 2U, 3U, 64U}) {
        RunConfig config = base_config();
        config.sync_replicas = sync;
        config.optimizer.average_decay = average_decay;
        config.trainers = trainers;
        const std::size_t bytes = Shard::arena_size(config, range) * sizeof(float);
        EXPECT_LE(net::ParameterMemory::largest(bytes, slot_of_primary(trainers) + 1),
                  most_of_ps(range.size(), trainers))
            << sync << " " << average_decay << " " << trainers;
      }
    }
  }
}

TEST(UpdateMemory, OverTcpAloneThereIsNone) {
  Task task;
  task.transport = Transport::kTcp;
  EXPECT_EQ(make_update_slots(task, base_config(), 1000), nullptr);
}

}  // namespace
}  // namespace disttf::roles
