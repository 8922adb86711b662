// A host of a range in a run that stops early.
#include <gtest/gtest.h>

#include <optional>

#include "net/wire/messages.h"
#include "tests/roles/range_replica_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameKind;

// Gradients that have arrived already have no effect.
TEST_F(RangeReplicaTest, WhoWaitsForAStepThatIsNotMadeHasTheResult) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(other, push(0), gradient(1)));
  ASSERT_FALSE(host_.take(other).has_value());
  ASSERT_TRUE(host_.say(chief, net::Pull{.concludes = true}.to_header()));
  for (const ConnectionId each : {chief, other}) {
    const auto answer = host_.take(each).value_or(SentFrame{}).header;
    EXPECT_EQ(answer.kind, FrameKind::kParameters);
    EXPECT_EQ(answer.step, 0U);
    EXPECT_EQ(answer.flags, net::kFlagFinished);
  }
  ASSERT_TRUE(host_.say(chief, push(0), gradient(1)));
  EXPECT_EQ(host_.take(chief).value_or(SentFrame{}).header.step, 0U) << "nor does one that is late";
  ASSERT_TRUE(host_.say(other, net::Goodbye{.generation = 1}.to_header()));
  ASSERT_TRUE(host_.say(chief, net::Goodbye{.generation = 1}.to_header()));
  expect(host_, chief, FrameKind::kAck);
}

TEST_F(RangeReplicaTest, NoWorkerIsMissedAfterAnEarlyStop) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  host_.hang_up(other);
  ASSERT_TRUE(host_.say(chief, net::Pull{.concludes = true}.to_header()));
  host_.pass(ReplicaHost::Seconds(25));
  EXPECT_EQ(host_.core.overdue(host_.now()), std::nullopt);
}

TEST_F(RangeReplicaTest, AStateMayBeSetAsTheResultOfARunThatHasEndedEarly) {
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(chief,
                        net::Restore{.step = 2, .generation = 2, .finished = true}.to_header(),
                        Bytes(size_ * sizeof(float))));
  expect(host_, chief, FrameKind::kAck);
  const ConnectionId other = host_.connect(1, 8);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  EXPECT_EQ(host_.take(other).value_or(SentFrame{}).header.flags, net::kFlagFinished);
  ASSERT_TRUE(host_.say(chief, net::Restore{.step = 1, .generation = 3}.to_header(),
                        Bytes(size_ * sizeof(float))));
  expect(host_, chief, FrameKind::kAck);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  EXPECT_EQ(host_.take(other).value_or(SentFrame{}).header.flags, 0) << "that is taken back";
}

TEST_F(RangeReplicaTest, TheBestEvaluationIsTheNewestThatWasTold) {
  const ConnectionId chief = host_.connect(0, 7);
  begin_run(host_, chief, small_run());
  const auto tell = [&](const net::Best& best) {
    net::Best answer;
    EXPECT_TRUE(host_.say(chief, best.to_header()));
    EXPECT_FALSE(answer.from_header(host_.take(chief).value_or(SentFrame{}).header));
    return answer;
  };
  EXPECT_EQ(tell({.request_id = 4}), (net::Best{.request_id = 4}));
  EXPECT_EQ(tell({.request_id = 5, .step = 20, .loss = 0.5}).loss, 0.5);
  EXPECT_EQ(tell({.request_id = 6, .step = 10, .loss = 0.75}),
            (net::Best{.request_id = 6, .step = 20, .loss = 0.5}));
  const ConnectionId other = host_.connect(1, 8);
  EXPECT_FALSE(host_.say(other, net::Best{.step = 30}.to_header()));
  EXPECT_EQ(host_.refused().at(other), "only the chief judges evaluations");
}

}  // namespace
}  // namespace disttf::roles
