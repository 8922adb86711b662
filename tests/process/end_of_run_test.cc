// When a task may leave a run, and the answers to a late task: a real ps with trainers played by
// the test, so that all events happen in one order.

#include "run/run_config.h"
#include "tests/process/process_test.h"
#include "tests/process/raw_peer.h"
#include "tests/process/scripted_run.h"

namespace disttf::test_process {
namespace {

using net::FrameHeader;
using net::FrameKind;
using net::Job;

constexpr std::uint64_t kSteps = 3;

// One ps; worker 0 is the chief.
class EndOfRun : public ProcessTest {
 protected:
  void SetUp() override {
    ps_ = &run_task(cluster_, Job::kPs, 0, {"--peer_timeout=1"});
    ASSERT_TRUE(says(*ps_, "Started server"));
    config_ = softmax_run(2);
    config_.train_steps = kSteps;
  }

  [[nodiscard]] RawPeer chief(std::uint64_t incarnation = 1) const {
    return welcomed(cluster_, {.worker = 0, .incarnation = incarnation});
  }
  [[nodiscard]] RawPeer worker(std::uint64_t incarnation = 2) const {
    return welcomed(cluster_, {.worker = 1, .incarnation = incarnation});
  }

  void set(const RawPeer& chief, std::uint64_t step, net::Generation generation) const {
    publish_and_restore(chief, config_, step, generation);
  }
  // A chief that has set the state of the last step.
  [[nodiscard]] RawPeer chief_at_the_end() const {
    RawPeer boss = chief();
    set(boss, kSteps, 1);
    return boss;
  }
  // Sends GOODBYE and waits until the ps has read it, as its log says.
  void say_goodbye(const RawPeer& worker, net::Generation generation = 1) const {
    worker.write(goodbye(generation));
    EXPECT_TRUE(says(*ps_, "worker 1 .* said goodbye"));
  }
  [[nodiscard]] static Bytes goodbye(net::Generation generation = 1) {
    return frame({.kind = FrameKind::kGoodbye, .request_id = 5, .generation = generation});
  }
  [[nodiscard]] static Bytes shutdown() { return frame({.kind = FrameKind::kShutdown}); }
  // Expects that the peer has received only heartbeats.
  static void expect_unanswered(const RawPeer& peer) {
    FrameHeader header;
    Bytes body;
    while (peer.read_frame(header, body, milliseconds(1))) {
      EXPECT_EQ(header.kind, FrameKind::kHeartbeat);
    }
  }
  static void expect_answered(const RawPeer& peer, FrameKind kind) {
    Bytes body;
    const FrameHeader header = next_frame(peer, body);
    EXPECT_EQ(header.kind, kind);
    EXPECT_EQ(header.request_id, 5U);
  }

  const ClusterOnLoopback cluster_{{.ps = 1, .workers = 2}};
  Process* ps_ = nullptr;
  roles::RunConfig config_;
};

TEST_F(EndOfRun, AWorkerIsLetGoOnceTheChiefSaysThatTheResultIsDurable) {
  const RawPeer boss = chief_at_the_end();
  const RawPeer other = worker();
  say_goodbye(other);
  expect_ack(boss, goodbye());  // all trainers are done
  expect_unanswered(other);
  expect_ack(boss, shutdown());
  expect_answered(other, FrameKind::kAck);
}

TEST_F(EndOfRun, TheChiefIsAnsweredOnceTheOthersAreDone) {
  const RawPeer boss = chief_at_the_end();
  const RawPeer other = worker();
  boss.write(goodbye());
  Bytes body;
  // The ps sends this answer after it has read that frame.
  EXPECT_EQ(reply_to(boss, frame({.kind = FrameKind::kStatus}), body), FrameKind::kStatusReply);
  expect_unanswered(boss);
  say_goodbye(other);
  expect_answered(boss, FrameKind::kAck);
}

TEST_F(EndOfRun, AWorkerThatIsGoneKeepsTheChiefForAMomentOnly) {
  const RawPeer boss = chief_at_the_end();
  { const RawPeer other = worker(); }
  expect_ack(boss, goodbye());
}

// A ps was lost before the result was durable: all trainers repeat the steps since the last
// snapshot.
TEST_F(EndOfRun, WhoIsDoneIsNeededAgainWhenTheStateIsRolledBack) {
  const RawPeer boss = chief_at_the_end();
  const RawPeer other = worker();
  say_goodbye(other);
  set(boss, kSteps - 1, 2);
  expect_answered(other, FrameKind::kFenced);
  boss.write(goodbye(2));
  expect_answered(boss, FrameKind::kFenced);  // steps remain to be made
  set(boss, kSteps, 3);
  // The worker is needed: the chief gets no answer before the worker is done again.
  boss.write(goodbye(3));
  Bytes body;
  const RawPeer again = worker();
  EXPECT_EQ(reply_to(boss, frame({.kind = FrameKind::kStatus}), body), FrameKind::kStatusReply);
  expect_unanswered(boss);
}

TEST_F(EndOfRun, AGoodbyeToAStateThatIsNoMoreIsFenced) {
  const RawPeer boss = chief();
  set(boss, kSteps, 2);
  const RawPeer other = worker();
  other.write(goodbye(1));
  expect_answered(other, FrameKind::kFenced);
}

TEST_F(EndOfRun, WhoComesLateIsTold) {
  const RawPeer boss = chief_at_the_end();
  expect_ack(boss, shutdown());
  net::Welcome welcome;
  const RawPeer late = welcomed(cluster_, {.worker = 1, .incarnation = 9}, &welcome);
  EXPECT_EQ(welcome.state, net::ShardState::kFinished);
}

TEST_F(EndOfRun, ThePsEndsWhenTheChiefAndTheOthersHaveLeft) {
  const RawPeer boss = chief_at_the_end();
  {
    const RawPeer other = worker();
    say_goodbye(other);
    expect_ack(boss, shutdown());
    expect_answered(other, FrameKind::kAck);
  }
  expect_ack(boss, goodbye());
  EXPECT_TRUE(exits(*ps_, kExitDone));
  EXPECT_EQ(count_of(ps_->standard_error(), "the chief has been gone"), 0U)
      << "the chief had left the run";
}

// The chief may have notified only some of the ps, so the ps waits for it; but the run is over.
TEST_F(EndOfRun, AChiefThatDiesAfterTheResultIsWaitedForThenThePsEndsWithZero) {
  {
    const RawPeer boss = chief_at_the_end();
    expect_ack(boss, shutdown());
  }
  EXPECT_TRUE(exits(*ps_, kExitDone));
  EXPECT_TRUE(says(*ps_, "the run is over, and the chief has been gone for 1 s"));
}

TEST_F(EndOfRun, TheNextChiefCanTellAgain) {
  {
    const RawPeer boss = chief_at_the_end();
    expect_ack(boss, shutdown());
  }
  const RawPeer next = chief(8);
  expect_ack(next, shutdown());
  expect_ack(next, goodbye());
  EXPECT_TRUE(exits(*ps_, kExitDone));
}

// Ps and worker were killed and restarted while the chief was at its end.
TEST_F(EndOfRun, APsThatIsEmptyCanBeToldToo) {
  const RawPeer other = worker();
  other.write(frame({.kind = FrameKind::kPull, .request_id = 5}));
  const RawPeer boss = chief();
  expect_ack(boss, shutdown());
  expect_answered(other, FrameKind::kFenced);
  other.write(frame({.kind = FrameKind::kGetConfig, .request_id = 5}));
  expect_answered(other, FrameKind::kFenced);
  other.write(goodbye());
  expect_answered(other, FrameKind::kAck);
  boss.write(goodbye());
  EXPECT_TRUE(exits(*ps_, kExitDone));
}

TEST_F(EndOfRun, APushToAPsThatHoldsNothingIsFenced) {
  const RawPeer other = worker();
  expect_ack(chief(), shutdown());
  for (const FrameKind kind : {FrameKind::kPush, FrameKind::kPushPull}) {
    other.write(frame({.kind = kind, .request_id = 5}, Bytes(64)));
  }
  expect_answered(other, FrameKind::kFenced);
}

// The ps does not count its parameters as a state of the run.
TEST_F(EndOfRun, APsThatWasPublishedToAndNotRestoredHoldsNothing) {
  const RawPeer boss = chief();
  expect_ack(boss, frame({.kind = FrameKind::kPublish}, bytes_of(roles::to_json(config_))));
  const RawPeer other = worker();
  other.write(frame({.kind = FrameKind::kPull, .request_id = 5}));
  expect_ack(boss, shutdown());
  expect_answered(other, FrameKind::kFenced);
  other.write(frame({.kind = FrameKind::kGetConfig, .request_id = 5}));
  expect_answered(other, FrameKind::kFenced);
}

TEST_F(EndOfRun, OnlyTheChiefEndsIt) {
  const RawPeer boss = chief_at_the_end();
  expect_refused(worker(), shutdown(), "only the chief says that the run is over");
}

// The first of three processes wakes up after the third has replaced the second.
TEST_F(EndOfRun, EveryProcessThatWasReplacedIsFencedOff) {
  const RawPeer boss = chief();
  set(boss, 0, 1);
  const RawPeer first = worker(2);
  const RawPeer second = worker(3);
  const RawPeer third = worker(4);
  for (const std::uint64_t old : {std::uint64_t{2}, std::uint64_t{3}}) {
    expect_refused(say_hello(cluster_, {.worker = 1, .incarnation = old}), {},
                   "has been replaced by a newer process");
  }
  Bytes body;
  EXPECT_EQ(reply_to(third, frame({.kind = FrameKind::kStatus}), body), FrameKind::kStatusReply);
}

}  // namespace
}  // namespace disttf::test_process
