// A ps's core as a run begins: what an earlier run or half a state leaves behind.
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "tests/roles/range_replica_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameKind;

TEST_F(RangeReplicaTest, ARestoreThatBreaksOffLeavesNoState) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  host_.begin(chief, {.kind = FrameKind::kRestore, .generation = 2}, size_ * sizeof(float));
  host_.hang_up(chief);
  ASSERT_TRUE(host_.say(other, push(0), gradient(4)));
  expect(host_, other, FrameKind::kFenced);
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  EXPECT_FALSE(host_.take(other)) << "there is nothing to answer with before the chief is back";
  begin_run(host_, host_.connect(0, 7), small_run(), 0, 3);
  expect_parameters(host_, other, 0, 0);
}

// Closed before the new run's first state arrives, which overwrites what may still be in flight.
TEST_F(RangeReplicaTest, ANewRunClosesWhoMayStillBeSentWhatTheOldOneHeld) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, small_run());
  ASSERT_TRUE(host_.say(other, {.kind = FrameKind::kPull}));
  expect_parameters(host_, other, 0, 0);
  host_.begin(chief, {.kind = FrameKind::kRestore, .generation = 2}, size_ * sizeof(float));
  host_.hang_up(chief);
  EXPECT_FALSE(host_.is_closed(other)) << "the newest parameters stay where they are";
  const ConnectionId next = host_.connect(0, 9);
  const std::string published = to_json(small_run(/*train_steps=*/9));
  ASSERT_TRUE(host_.say(next, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published))));
  expect(host_, next, FrameKind::kAck);
  EXPECT_TRUE(host_.is_closed(other));
  EXPECT_FALSE(host_.is_closed(next));
}

}  // namespace
}  // namespace disttf::roles
