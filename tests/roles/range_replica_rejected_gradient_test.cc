// Gradients that must not go into a step are rejected in every mode and form, but only if a step
// would have been made from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "tests/roles/range_replica_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using ::testing::HasSubstr;

// The mode, and the form in which a trainer pushes its gradient.
struct Way {
  const char* name;
  RunConfig config = small_run();
  FrameHeader push = {.kind = FrameKind::kPushPull, .sequence = 1, .generation = 1};
  bool in_place = false;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

std::vector<Way> ways() {
  std::vector<Way> all{{.name = "Sync"},     {.name = "InPlace", .in_place = true},
                       {.name = "Bfloat16"}, {.name = "BackupWorkers"},
                       {.name = "Async"},    {.name = "Elastic"}};
  all[2].config.wire_dtype = WireDtype::kBf16;
  all[2].push.flags = net::kFlagBf16;
  all[3].config.replicas_to_aggregate = 1;
  all[4].config.sync_replicas = false;
  all[5].config.micro_batches = 2;
  all[5].config.min_workers = 1;
  all[5].push = {.kind = FrameKind::kPush, .sequence = 1, .generation = 1};
  return all;
}

class RejectedGradient : public RangeReplicaTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    begin_run(host_, host_.connect(0, 7), GetParam().config);
    other_ = host_.connect(1, 8);
    if (GetParam().config.elastic()) {
      ASSERT_TRUE(
          host_.say(other_, {.kind = FrameKind::kPull, .flags = net::kFlagNext, .generation = 1}));
    }
  }
  // A gradient of ones with one other value.
  [[nodiscard]] Bytes with(float value) const {
    std::vector<float> values(size_, 1);
    values[size_ / 2] = value;
    if (GetParam().config.wire_dtype == WireDtype::kBf16) {
      std::vector<std::uint16_t> halves(size_);
      std::ranges::transform(values, halves.begin(), [](float each) {
        return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(each) >> 16U);
      });
      return bytes_of(halves);
    }
    return bytes_of(values);
  }
  template <typename Number>
  static Bytes bytes_of(const std::vector<Number>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return {bytes.begin(), bytes.end()};
  }
  // Returns false if the gradient was refused or is otherwise unusable.
  bool push(const Bytes& gradient) {
    if (!GetParam().in_place) {
      return host_.say(other_, GetParam().push, gradient);
    }
    FrameHeader header = GetParam().push;
    header.body_size = gradient.size();
    const auto kept = std::make_shared<Bytes>(gradient);
    const BodyPlan plan =
        host_.core.header(other_, header, host_.now(), {.bytes = *kept, .owner = kept});
    host_.pass(ReplicaHost::Seconds(1));  // handles its effects
    return plan.next == BodyPlan::Next::kHeader;
  }
  [[nodiscard]] const ShardCounters& counters() { return host_.core.state().shard()->counters(); }

  ConnectionId other_ = 0;
};
INSTANTIATE_TEST_SUITE_P(InEachMode, RejectedGradient, testing::ValuesIn(ways()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(RejectedGradient, IsRefusedAndNoStepIsMadeOfIt) {
  for (const float none :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_FALSE(push(with(none)));
    EXPECT_THAT(host_.refused().at(other_), HasSubstr("has non-finite values, 1 of "));
    host_.hang_up(other_);
    other_ = host_.connect(1, 8);
  }
  EXPECT_EQ(counters().bad, 2U);
  EXPECT_EQ(counters().pushes, 0U);
  const ConnectionId asks = host_.connect(0, 7, net::ChannelPurpose::kControl);
  ASSERT_TRUE(host_.say(asks, {.kind = FrameKind::kStatus}));
  const auto status = host_.take(asks);
  ASSERT_TRUE(status.has_value());
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(status->body.data()), status->body.size()),
              HasSubstr("\"bad\":2"));
  EXPECT_TRUE(push(with(2))) << "an honest one is taken after that";
  EXPECT_EQ(counters().pushes, 1U);
}

// A trainer that was too slow is notified of that, and not that its gradient was rejected.
TEST_F(RangeReplicaTest, ARejectedGradientThatWasOvertakenIsDropped) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  RunConfig config = small_run();
  config.replicas_to_aggregate = 1;
  begin_run(host_, chief, config);
  const Bytes bad = gradient(std::numeric_limits<float>::infinity());
  const BodyPlan plan = host_.begin(other, push(0), bad.size());
  ASSERT_TRUE(host_.say(chief, push(0), gradient(1)));  // makes the step
  EXPECT_TRUE(host_.deliver(other, plan, bad));
  EXPECT_EQ(host_.core.state().shard()->counters().dropped, 1U);
  EXPECT_EQ(host_.core.state().shard()->counters().bad, 0U);
  EXPECT_TRUE(host_.refused().empty());
}

TEST_F(RangeReplicaTest, WhereRejectedGradientsAreCountedTheFirstOfAConnectionIsReported) {
  const ConnectionId chief = host_.connect(0, 7);
  RunConfig config = small_run();
  config.sync_replicas = false;
  config.rejected_gradients = RejectedGradients::kCount;
  config.max_gradient_norm = 1;
  begin_run(host_, chief, config);
  for (const std::uint64_t step : {0U, 1U}) {
    ASSERT_TRUE(host_.say(chief, push(step), gradient(1)));
    expect(host_, chief, FrameKind::kParameters);
  }
  EXPECT_EQ(host_.core.state().shard()->counters().bad, 2U);
  EXPECT_EQ(host_.core.state().shard()->step(), 2U) << "they are used";
  EXPECT_EQ(std::ranges::count_if(host_.log(),
                                  [](const std::string& line) {
                                    return line.find("--max_gradient_norm is 1; it is used") !=
                                           std::string::npos;
                                  }),
            1);
}

}  // namespace
}  // namespace disttf::roles
