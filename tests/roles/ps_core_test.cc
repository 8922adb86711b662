// A ps as a process in virtual time: which ranges it hosts, when it fails, how it ends.
#include "roles/ps/core/ps_core.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "math/model.h"
#include "net/wire/replication.h"
#include "tests/roles/ps_host.h"

namespace disttf::roles {
namespace {

using net::ChannelPurpose;
using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PsCoreTest : public testing::Test {
 protected:
  void expect_end(ExitCode code, const std::string& part) const {
    ASSERT_TRUE(host_.end);
    EXPECT_EQ(host_.end->code, code);
    EXPECT_THAT(host_.end->sentence, HasSubstr(part));
  }

  Task task_ = task_of_ps(0, 2);
  PsHost host_{task_};
};

// ---- connections ----

TEST_F(PsCoreTest, TakesNoRequests) {
  EXPECT_THAT(host_.why_refused(host_.hello_of(0, 7, ChannelPurpose::kRequest)).value_or(""),
              HasSubstr("ps 0 (ps0:1) trains; only disttf server takes requests to train"));
}

TEST_F(PsCoreTest, OnePsAloneHasNoReplicas) {
  const Task alone = task_of_ps(0);
  PsHost host(alone);
  EXPECT_TRUE(host.why_refused(host.hello_of(0, 7, ChannelPurpose::kProbe, 1)));
  EXPECT_EQ(host.core.range_count(), 1U);
}

TEST_F(PsCoreTest, HostsTheRangeBeforeItsOwnOnceAHelloMeansIt) {
  ASSERT_EQ(host_.core.range_count(), 1U);
  EXPECT_EQ(host_.core.range(0).state().index(), 0U);
  host_.connect(0, 7, ChannelPurpose::kView, 1);
  ASSERT_EQ(host_.core.range_count(), 2U);
  EXPECT_EQ(host_.core.range(1).state().index(), 1U) << "of the ring of two";
}

TEST_F(PsCoreTest, WhatIsHeardOnAControlChannelHoldsForAllRanges) {
  const ConnectionId before = host_.connect(0, 7, ChannelPurpose::kControl);
  host_.connect(0, 7, ChannelPurpose::kView, 1);
  EXPECT_TRUE(host_.core.range(1).host().trainers[0].alive()) << "it was there before the range";
  const ConnectionId after = host_.connect(1, 8, ChannelPurpose::kControl);
  EXPECT_TRUE(host_.core.range(0).host().trainers[1].alive());
  EXPECT_TRUE(host_.core.range(1).host().trainers[1].alive());
  host_.pass(seconds(2));
  EXPECT_TRUE(host_.say(before, {.kind = FrameKind::kHeartbeat}));
  for (const std::size_t replica : {0U, 1U}) {
    EXPECT_EQ(host_.core.range(replica).host().trainers[0].last_received, host_.now());
  }
  host_.hang_up(after);
  EXPECT_FALSE(host_.core.range(0).host().trainers[1].alive());
  EXPECT_FALSE(host_.core.range(1).host().trainers[1].alive());
}

// This ps has replaced one to which the trainer may still have a link.
TEST_F(PsCoreTest, WhoNamesAGenerationThatItDoesNotHoldIsTold) {
  const ConnectionId control = host_.connect(0, 7, ChannelPurpose::kControl);
  host_.say(control, {.kind = FrameKind::kHeartbeat});
  EXPECT_THAT(host_.sent[control], IsEmpty()) << "it has not joined the run yet";
  host_.say(control, {.kind = FrameKind::kHeartbeat, .generation = 1});
  EXPECT_THAT(host_.sent[control], ElementsAre(FrameKind::kFenced));
  host_.sent.clear();
  host_.run_to_the_end(host_.connect(0, 7));
  host_.say(control, {.kind = FrameKind::kHeartbeat, .generation = 1});
  EXPECT_THAT(host_.sent[control], IsEmpty());
}

TEST_F(PsCoreTest, AControlChannelCarriesHeartbeatsOnly) {
  const ConnectionId control = host_.connect(0, 7, ChannelPurpose::kControl);
  EXPECT_FALSE(host_.say(control, {.kind = FrameKind::kPull}));
  EXPECT_EQ(host_.refused[control], "a control channel carries heartbeats and metrics only");
}

TEST_F(PsCoreTest, WhatTrainersTellTheChiefIsToldOnce) {
  const ConnectionId chief = host_.connect(0, 7, ChannelPurpose::kControl);
  const ConnectionId worker = host_.connect(1, 7, ChannelPurpose::kControl);
  const auto tell = [&](const std::string& text) {
    return host_.say(worker, {.kind = FrameKind::kMetrics}, std::as_bytes(std::span(text)));
  };
  EXPECT_TRUE(tell("older"));
  EXPECT_TRUE(tell("newer"));
  EXPECT_TRUE(host_.say(chief, {.kind = FrameKind::kGetMetrics, .request_id = 5}));
  ASSERT_TRUE(host_.asked);
  EXPECT_EQ(host_.asked->to, chief);
  EXPECT_EQ(host_.asked->request_id, 5U);
  EXPECT_THAT(host_.core.relay().take(), ElementsAre("older", "newer"));
  EXPECT_THAT(host_.core.relay().take(), IsEmpty());
  EXPECT_EQ(host_.core.take_metrics().task, task_.self);
}

TEST_F(PsCoreTest, TheChiefHasStepsTracedAndPs0TellsTrainers) {
  const ConnectionId chief = host_.connect(0, 7, ChannelPurpose::kControl);
  const ConnectionId worker = host_.connect(1, 7, ChannelPurpose::kControl);
  const auto tell = [&] {
    return host_.say(worker, {.kind = FrameKind::kMetrics}, std::as_bytes(std::span("{}", 2)));
  };
  EXPECT_TRUE(tell());
  EXPECT_TRUE(host_.traces.empty()) << "nothing is traced";
  EXPECT_TRUE(host_.say(chief, {.kind = FrameKind::kTrace, .step = 10, .sequence = 3}));
  EXPECT_TRUE(tell());
  EXPECT_EQ(host_.traces[worker], (StepWindow{.from = 10, .count = 3}));
  EXPECT_FALSE(host_.say(worker, {.kind = FrameKind::kTrace, .step = 10, .sequence = 3}));
  EXPECT_TRUE(host_.refused.contains(worker)) << "it is no chief";
  EXPECT_FALSE(host_.say(chief, {.kind = FrameKind::kTrace, .sequence = 1001}));
  EXPECT_TRUE(host_.refused.contains(chief)) << "too many";
}

TEST_F(PsCoreTest, OfATrainerTheNewestTextsAreKept) {
  const ConnectionId worker = host_.connect(1, 7, ChannelPurpose::kControl);
  for (const char* text : {"1", "2", "3", "4", "5"}) {
    EXPECT_TRUE(
        host_.say(worker, {.kind = FrameKind::kMetrics}, std::as_bytes(std::span(text, 1))));
  }
  EXPECT_THAT(host_.core.relay().take(), ElementsAre("2", "3", "4", "5"));
}

TEST_F(PsCoreTest, OnlyTheChiefAsksHowAPsDoes) {
  const ConnectionId worker = host_.connect(1, 7, ChannelPurpose::kControl);
  EXPECT_FALSE(host_.say(worker, {.kind = FrameKind::kGetMetrics}));
  EXPECT_TRUE(host_.refused.contains(worker));
}

TEST_F(PsCoreTest, WhatATrainerTellsIsBounded) {
  const ConnectionId worker = host_.connect(1, 7, ChannelPurpose::kControl);
  EXPECT_FALSE(host_.say(worker, {.kind = FrameKind::kMetrics}, Bytes(net::kMaxMetricsBytes + 1)));
  EXPECT_TRUE(host_.refused.contains(worker));
}

TEST_F(PsCoreTest, AStateChannelAsksForSnapshots) {
  host_.connect(0, 7, ChannelPurpose::kState);
  EXPECT_EQ(host_.reads, PsCore::Reads::kSnapshots);
}

// ---- two processes of one trainer ----

// An evaluator is no trainer: its identity is not checked, and its loss is not reported.
TEST_F(PsCoreTest, AnEvaluatorIsReadFromAndInNoTable) {
  net::Hello hello = host_.hello_of(0, 9, ChannelPurpose::kState);
  hello.from = {.job = net::Job::kEvaluator, .index = 0};
  const ConnectionId first = host_.connect(hello);
  EXPECT_EQ(host_.reads, PsCore::Reads::kFrames);
  const ConnectionId second = host_.connect(hello);  // of the same process: the newer one counts
  EXPECT_TRUE(host_.closed.contains(first));
  hello.incarnation = 8;  // of another process: both count
  const ConnectionId other_one = host_.connect(hello);
  EXPECT_FALSE(host_.closed.contains(second));
  host_.hang_up(first);
  host_.hang_up(other_one);
  EXPECT_TRUE(host_.say(second, {.kind = FrameKind::kGetConfig}));
  host_.hang_up(second);
  for (const ChannelPurpose other : {ChannelPurpose::kStep, ChannelPurpose::kControl}) {
    hello.purpose = other;
    EXPECT_THAT(host_.why_refused(hello).value_or(""), HasSubstr("evaluator 0 is no trainer"));
  }
  EXPECT_FALSE(host_.core.range(0).host().trainers[0].alive());
}

TEST_F(PsCoreTest, TheNewerProcessReplacesTheOlderOneOnEveryChannelOfEveryRange) {
  const ConnectionId step = host_.connect(0, 7);
  const ConnectionId control = host_.connect(0, 7, ChannelPurpose::kControl);
  const ConnectionId snapshots = host_.connect(0, 7, ChannelPurpose::kState);
  const ConnectionId views = host_.connect(0, 7, ChannelPurpose::kView, 1);
  const ConnectionId other = host_.connect(1, 7);
  EXPECT_FALSE(host_.refusal_of(host_.hello_of(0, 8, ChannelPurpose::kView)));
  EXPECT_THAT(host_.closed, UnorderedElementsAre(step, control, snapshots));
  EXPECT_THAT(host_.replaced, ElementsAre(std::pair(views, 8)))
      << "the chief is notified, or it would consider this host lost";
  EXPECT_FALSE(host_.closed.contains(other));
}

TEST_F(PsCoreTest, TheOlderProcessIsRefusedAndToldByWhom) {
  host_.connect(0, 8, ChannelPurpose::kView, 1);
  for (const ChannelPurpose purpose : {ChannelPurpose::kStep, ChannelPurpose::kControl,
                                       ChannelPurpose::kState, ChannelPurpose::kView}) {
    for (const std::uint8_t replica : {std::uint8_t{0}, std::uint8_t{1}}) {
      const auto refusal = host_.refusal_of(host_.hello_of(0, 7, purpose, replica));
      ASSERT_TRUE(refusal);
      EXPECT_EQ(refusal->exit_code, kLostPeers);
      EXPECT_EQ(refusal->sentence,
                "worker 0 (w0:2) has been replaced by a newer process; this one is no longer part "
                "of the run");
      EXPECT_EQ(refusal->replaced_by, 8U);
    }
  }
  EXPECT_FALSE(host_.refusal_of(host_.hello_of(0, 7, ChannelPurpose::kProbe)));
  EXPECT_FALSE(host_.refusal_of(host_.hello_of(1, 7, ChannelPurpose::kStep))) << "another trainer";
  EXPECT_FALSE(host_.refusal_of(host_.hello_of(0, 9, ChannelPurpose::kStep)));
  EXPECT_TRUE(host_.refusal_of(host_.hello_of(0, 8, ChannelPurpose::kStep)));
}

TEST_F(PsCoreTest, WhatAReplacedProcessStillSaysDoesNotCount) {
  const ConnectionId views = host_.connect(0, 7, ChannelPurpose::kView);
  host_.connect(0, 8, ChannelPurpose::kControl);
  EXPECT_FALSE(host_.say(views, {.kind = FrameKind::kView},
                         net::encode(net::View{.number = {7, 1}, .primary = 1})));
  EXPECT_EQ(host_.core.range(0).host().role, net::ReplicaRole::kOnly);
}

// It was welcomed, and then a newer process was.
TEST_F(PsCoreTest, WhoIsReplacedBeforeItIsServedIsNotServed) {
  const net::Hello older = host_.hello_of(0, 7, ChannelPurpose::kStep);
  EXPECT_FALSE(host_.refusal_of(older));
  EXPECT_FALSE(host_.refusal_of(host_.hello_of(0, 8, ChannelPurpose::kStep)));
  EXPECT_EQ(host_.core.connected(50, older, "worker 0", host_.now()), PsCore::Reads::kNothing);
}

// A copy arrives with the incarnations of trainers and chiefs that its primary has recorded.
TEST_F(PsCoreTest, WhoIsHeardOfFromAnotherHostIsKnownToo) {
  const ConnectionId views = host_.connect(0, 7, ChannelPurpose::kView, 1);
  const net::Hello primary{.cluster = {},
                           .from = {.job = net::Job::kPs, .index = 1},
                           .to = task_.self,
                           .purpose = ChannelPurpose::kReplica,
                           .replica = 1,
                           .incarnation = 101};
  const ConnectionId from = host_.connect(primary);
  RunConfig config = small_run();
  config.ps_replicas = 2;
  const std::string published = to_json(config);
  host_.say(from, {.kind = FrameKind::kPublish, .step = 9, .sequence = 1},
            std::as_bytes(std::span(published)));
  EXPECT_THAT(host_.replaced, ElementsAre(std::pair(views, 9)));
  EXPECT_TRUE(host_.why_refused(host_.hello_of(0, 8, ChannelPurpose::kStep)));
}

TEST_F(PsCoreTest, WhoseCopyLacksWhatATrainerNamesWelcomesItWithNothing) {
  host_.say(host_.connect(0, 7, ChannelPurpose::kView), {.kind = FrameKind::kView},
            net::encode(net::View{.number = {7, 1}, .primary = 0, .paired = false}));
  const ConnectionId chief = host_.connect(0, 7);
  RunConfig config = small_run();
  config.ps_replicas = 2;
  const std::string published = to_json(config);
  host_.say(chief, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published)));
  host_.say(chief, {.kind = FrameKind::kRestore, .step = 1, .generation = 1},
            Bytes(math::layout_of(config.model).size() * sizeof(float)));
  net::Hello hello = host_.hello_of(1, 8, ChannelPurpose::kStep);
  for (const std::uint64_t step : {1U, 2U}) {
    hello.last = {.generation = 1, .step = step};
    const auto welcome = std::get<net::Welcome>(host_.core.welcome(hello, host_.now()));
    EXPECT_EQ(welcome.state == net::ShardState::kEmpty, step == 2);
  }
}

// ---- the end ----

TEST_F(PsCoreTest, OneThatWasReplacedAfterATimeoutLeavesTheRunAsItIs) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId control = host_.connect(0, 7, ChannelPurpose::kControl);
  const std::string published = to_json(small_run());
  host_.say(chief, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published)));
  host_.say(chief, {.kind = FrameKind::kRestore, .generation = 1},
            Bytes(math::layout_of(small_run().model).size() * sizeof(float)));
  EXPECT_TRUE(host_.say(control, {.kind = FrameKind::kHeartbeat, .generation = 1}));
  EXPECT_FALSE(host_.say(control, {.kind = FrameKind::kHeartbeat, .generation = 2}));
  expect_end(kLostPeers, "was replaced while it was silent");
  EXPECT_TRUE(host_.refused.empty()) << "no peer is notified of a failed run";
}

TEST_F(PsCoreTest, TheRunFailsWithAChiefThatIsGoneForTooLong) {
  const ConnectionId worker = host_.connect(1, 8);
  host_.hang_up(host_.connect(0, 7));
  host_.pass(task_.timeouts.peer);
  EXPECT_FALSE(host_.core.has_ended());
  host_.pass(kWatchInterval);
  EXPECT_TRUE(host_.core.has_ended());
  EXPECT_TRUE(host_.is_closed) << "who comes now is to find the next process";
  EXPECT_EQ(host_.refused[worker],
            "the chief, worker 0 (w0:2), has been gone for 60 s (says ps 0 (ps0:1))");
  ASSERT_TRUE(host_.awaits);
  EXPECT_EQ(host_.awaits->at_least, kDrainTimeout);
  EXPECT_FALSE(host_.end) << "before all could see it";
  host_.drain();
  expect_end(kLostPeers, "the chief, worker 0 (w0:2), has been gone for 60 s");
}

TEST_F(PsCoreTest, TimeThatItMissedDoesNotCountTowardTimeouts) {
  host_.hang_up(host_.connect(0, 7));
  host_.pass(task_.timeouts.peer);
  host_.core.forgive(seconds(1), host_.now());
  host_.pass(seconds(1));
  EXPECT_FALSE(host_.core.has_ended());
  host_.pass(kWatchInterval);
  EXPECT_TRUE(host_.core.has_ended());
}

TEST_F(PsCoreTest, AnInterruptEndsTheRun) {
  const ConnectionId worker = host_.connect(1, 8);
  host_.stop(kInterrupted, "SIGINT");
  EXPECT_EQ(host_.refused[worker], "ps 0 (ps0:1) was stopped by SIGINT");
  EXPECT_TRUE(host_.is_closed);
  host_.drain();
  expect_end(kInterrupted, "stopped by SIGINT before the run finished");
}

TEST_F(PsCoreTest, ATerminationMovesThisProcessAlone) {
  host_.connect(1, 8);
  host_.stop(kTerminated, "SIGTERM");
  EXPECT_TRUE(host_.refused.empty());
  expect_end(kTerminated, "stopped by SIGTERM before the run finished");
}

TEST_F(PsCoreTest, WhatItCannotDoEndsTheRun) {
  const ConnectionId worker = host_.connect(1, 8);
  host_.core.broke("there is not enough memory");
  host_.pass(kWatchInterval);
  EXPECT_EQ(host_.refused[worker], "ps 0 (ps0:1) failed: there is not enough memory");
  host_.drain();
  expect_end(kError, "there is not enough memory");
}

TEST_F(PsCoreTest, EndsWithItsRanges) {
  const ConnectionId chief = host_.connect(0, 7);
  host_.run_to_the_end(chief);
  EXPECT_FALSE(host_.core.has_ended());
  host_.say(chief, {.kind = FrameKind::kGoodbye, .generation = 1});
  ASSERT_TRUE(host_.awaits) << "the answer to the goodbye is to leave first";
  EXPECT_FALSE(host_.end);
  host_.drain();
  expect_end(kDone, "");
}

TEST_F(PsCoreTest, MayStayUntilItIsToldToStop) {
  task_.on_finish = OnFinish::kIdle;
  const ConnectionId chief = host_.connect(0, 7);
  host_.run_to_the_end(chief);
  host_.say(chief, {.kind = FrameKind::kGoodbye, .generation = 1});
  host_.drain();
  EXPECT_TRUE(host_.is_idle);
  EXPECT_FALSE(host_.end);
  host_.stop(kTerminated, "SIGTERM");
  expect_end(kDone, "");
}

TEST_F(PsCoreTest, ASignalAfterTheRunEndsTheWaitForTheOthers) {
  task_.on_finish = OnFinish::kIdle;
  host_.connect(1, 8);
  host_.run_to_the_end(host_.connect(0, 7));
  EXPECT_FALSE(host_.core.has_ended());
  host_.stop(kTerminated, "SIGTERM");
  EXPECT_TRUE(host_.core.has_ended());
  host_.drain();
  expect_end(kDone, "");
}

// The chief has died after notifying one of the two ranges.
TEST_F(PsCoreTest, WhatTheChiefHasSaidOfOneRangeHoldsForAll) {
  for (const std::uint8_t replica : {std::uint8_t{0}, std::uint8_t{1}}) {
    const ConnectionId views = host_.connect(0, 7, ChannelPurpose::kView, replica);
    host_.say(views, {.kind = FrameKind::kView},
              net::encode(net::View{.number = {7, 1}, .primary = replica, .paired = false}));
    host_.hang_up(views);
  }
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId of_other = host_.connect(0, 7, ChannelPurpose::kStep, 1);
  host_.run_to_the_end(chief, 2);
  host_.hang_up(chief);
  host_.hang_up(of_other);
  host_.pass(task_.timeouts.peer + seconds(1));
  EXPECT_TRUE(host_.core.has_ended());
  EXPECT_FALSE(host_.is_closed) << "it is no failure";
  host_.drain();
  expect_end(kDone, "");
}

}  // namespace
}  // namespace disttf::roles
