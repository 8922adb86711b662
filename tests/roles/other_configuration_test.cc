// A chief with another configuration: which run a ps assigns a trainer to, what a refused chief
// leaves behind, and how long a trainer retries what fails every time.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "net/wire/messages.h"
#include "tests/roles/ps_host.h"
#include "tests/roles/range_replica_fixture.h"
#include "tests/roles/run_session_fixture.h"

namespace disttf::roles {
namespace {

using net::ChannelPurpose;
using net::FrameKind;
using std::chrono::seconds;
using ::testing::HasSubstr;

// ---- a ps, and trainers of another configuration

class AnotherConfiguration : public RangeReplicaTest {
 protected:
  static std::uint64_t id_of(const RunConfig& config) { return configuration_id(to_json(config)); }
  static net::FrameHeader pull_with(const RunConfig& config, bool concludes = false) {
    return net::Pull{.request_id = 4, .configuration = id_of(config), .concludes = concludes}
        .to_header();
  }
  void expect_config(ConnectionId id, const RunConfig& config) {
    const auto frame = host_.take(id);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->header.kind, FrameKind::kConfig);
    EXPECT_EQ(frame->header.request_id, 4U);
    const std::string published = to_json(config);
    EXPECT_TRUE(std::ranges::equal(frame->body, std::as_bytes(std::span(published))));
  }
  bool publish(ConnectionId chief, const RunConfig& config) {
    const std::string published = to_json(config);
    return host_.say(chief, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published)));
  }
  [[nodiscard]] net::Hello evaluator() const {
    return {.cluster = {},
            .from = {.job = net::Job::kEvaluator, .index = 0},
            .to = task_.self,
            .purpose = ChannelPurpose::kState,
            .incarnation = 9};
  }

  const RunConfig ours_ = small_run();
  const RunConfig theirs_ = small_run(/*train_steps=*/9);
};

TEST_F(AnotherConfiguration, APullThatNamesItIsAnsweredWithTheRunsOwn) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, ours_);
  ASSERT_TRUE(host_.say(other, pull_with(theirs_)));
  expect_config(other, ours_);
  ASSERT_TRUE(host_.say(other, pull_with(ours_)));
  expect_parameters(host_, other, 0, 0);
}

TEST_F(AnotherConfiguration, SoIsOneThatHasWaitedForTheRunToBegin) {
  const ConnectionId other = host_.connect(1, 8);
  ASSERT_TRUE(host_.say(other, pull_with(theirs_)));
  EXPECT_FALSE(host_.take(other));
  begin_run(host_, host_.connect(0, 7), ours_);
  expect_config(other, ours_);
}

TEST_F(AnotherConfiguration, APullThatNamesItEndsNoRun) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, ours_);
  ASSERT_TRUE(host_.say(chief, pull_with(theirs_, /*concludes=*/true)));
  expect_config(chief, ours_);
  for (const ConnectionId trainer : {chief, other}) {
    ASSERT_TRUE(host_.say(trainer, push(0), gradient(1)));
  }
  expect_parameters(host_, other, 1, -1);
}

// The generation of a push belongs to one configuration.
TEST_F(AnotherConfiguration, APushOfARunBeforeIsFenced) {
  const ConnectionId chief = host_.connect(0, 7);
  const ConnectionId other = host_.connect(1, 8);
  begin_run(host_, chief, ours_, 0, /*generation=*/1);
  host_.begin(chief, {.kind = FrameKind::kRestore, .generation = 2}, size_ * sizeof(float));
  host_.hang_up(chief);  // half a state: another chief may publish
  host_.hang_up(other);
  const ConnectionId next = host_.connect(0, 9);
  const ConnectionId again = host_.connect(1, 8);
  begin_run(host_, next, theirs_, 0, /*generation=*/3);
  ASSERT_TRUE(host_.say(again, push(0, /*generation=*/1), gradient(1)));
  expect(host_, again, FrameKind::kFenced);
}

TEST_F(AnotherConfiguration, AnEvaluatorIsNotToldWhatWasOnlyPublished) {
  ASSERT_TRUE(publish(host_.connect(0, 7), theirs_));
  const ConnectionId id = host_.connect(evaluator());
  ASSERT_TRUE(host_.say(id, {.kind = FrameKind::kGetConfig}));
  expect(host_, id, FrameKind::kAck);
}

TEST_F(AnotherConfiguration, ARunThatBeginsInThePlaceOfOneClosesEvaluators) {
  ASSERT_TRUE(publish(host_.connect(0, 7), theirs_));
  const ConnectionId id = host_.connect(evaluator());
  ASSERT_TRUE(publish(host_.connect(0, 8), ours_));
  EXPECT_TRUE(host_.is_closed(id)) << "or else it takes the new run's parameters for the old one's";
}

// ---- a chief that is refused changes nothing

TEST_F(AnotherConfiguration, AChiefThatIsRefusedIsToldWhatDiffers) {
  begin_run(host_, host_.connect(0, 7), ours_);
  const ConnectionId wrong = host_.connect(0, 8);
  EXPECT_FALSE(publish(wrong, theirs_));
  EXPECT_THAT(host_.refused().at(wrong),
              HasSubstr("a run with another configuration is under way here: --train_steps is 9, "
                        "it was 3"));
}

// Another ps may have refused the chief that has published here.
TEST_F(AnotherConfiguration, WhatWasOnlyPublishedKeepsNoChiefWithReplicasAway) {
  ASSERT_TRUE(publish(host_.connect(0, 7), ours_));
  host_.connect(0, 8, ChannelPurpose::kView);  // is welcomed
}

class RefusedChief : public testing::Test {
 protected:
  bool publish(PsHost& host, ConnectionId chief, std::size_t replicas) {
    RunConfig config = small_run();
    config.ps_replicas = replicas;
    const std::string published = to_json(config);
    return host.say(chief, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published)));
  }
  // Process 7 is the chief of a run without replicas.
  void lead() {
    step_ = host_.connect(0, 7);
    control_ = host_.connect(0, 7, ChannelPurpose::kControl);
    ASSERT_TRUE(publish(host_, step_, 1));
    const math::Range range = host_.core.range(0).state().shard()->range();
    ASSERT_TRUE(host_.say(step_,
                          net::Restore{.range_begin = range.begin, .generation = 1}.to_header(),
                          Bytes(range.size() * sizeof(float))));
    ASSERT_TRUE(host_.core.range(0).host().holds_state());
  }
  // Process 8 is the chief, with these channels.
  void expect_chief(ConnectionId step, ConnectionId control) {
    const TrainerRecord& record = host_.core.range(0).host().trainers[0];
    EXPECT_EQ(record.incarnation, 8U);
    EXPECT_EQ(record.step, step);
    EXPECT_EQ(record.control, control);
    EXPECT_TRUE(host_.refusal_of(host_.hello_of(0, 7, ChannelPurpose::kStep)));
    EXPECT_TRUE(host_.say(control, {.kind = FrameKind::kHeartbeat}));
  }
  void tell(ConnectionId views, const net::View& view) {
    ASSERT_TRUE(host_.say(views, {.kind = FrameKind::kView}, net::encode(view)));
  }
  // Sends views of a run with replicas to both ranges of this ps. In the first view it serves its
  // own range.
  void tell_views(std::uint64_t chief) {
    for (const std::uint8_t replica : std::array<std::uint8_t, 2>{0, 1}) {
      const ConnectionId views = host_.connect(0, chief, ChannelPurpose::kView, replica);
      tell(views, {.number = {chief, 1}, .primary = 0});
      views_.push_back(views);
    }
  }

  const Task task_ = task_of_ps(0, 2);
  PsHost host_{task_};
  std::vector<ConnectionId> views_;
  ConnectionId step_ = 0;
  ConnectionId control_ = 0;
};

TEST_F(RefusedChief, LeavesTheOneThatLeadsTheRun) {
  lead();
  const ConnectionId beats = host_.connect(0, 8, ChannelPurpose::kControl);
  const ConnectionId wrong = host_.connect(0, 8);
  EXPECT_TRUE(host_.say(beats, {.kind = FrameKind::kHeartbeat}));
  const std::string published = to_json(small_run(/*train_steps=*/9));
  EXPECT_FALSE(
      host_.say(wrong, {.kind = FrameKind::kPublish}, std::as_bytes(std::span(published))));
  EXPECT_THAT(host_.refused[wrong], HasSubstr("a run with another configuration is under way"));
  host_.hang_up(wrong);
  host_.hang_up(beats);
  EXPECT_TRUE(host_.closed.empty());
  EXPECT_TRUE(host_.say(step_, {.kind = FrameKind::kHeartbeat}));
  EXPECT_FALSE(host_.refusal_of(host_.hello_of(0, 7, ChannelPurpose::kStep)));
}

TEST_F(RefusedChief, IsNotTheOneWithTheSameConfiguration) {
  lead();
  const ConnectionId beats = host_.connect(0, 8, ChannelPurpose::kControl);
  const ConnectionId right = host_.connect(0, 8);
  EXPECT_TRUE(host_.closed.empty());
  EXPECT_TRUE(publish(host_, right, 1));
  EXPECT_EQ(host_.closed, (std::set<ConnectionId>{step_, control_}));
  expect_chief(right, beats);
}

TEST_F(RefusedChief, IsNotTheOneThatFollowsAChiefThatHasGone) {
  lead();
  const ConnectionId right = host_.connect(0, 8);
  const ConnectionId beats = host_.connect(0, 8, ChannelPurpose::kControl);
  host_.hang_up(step_);
  EXPECT_EQ(host_.core.range(0).host().trainers[0].control, control_);
  host_.hang_up(control_);
  expect_chief(right, beats);
  EXPECT_TRUE(publish(host_, right, 1));
}

TEST_F(RefusedChief, IsNotTheOneThatHasFoundTheRunOverAtAnotherPs) {
  lead();
  const ConnectionId beats = host_.connect(0, 8, ChannelPurpose::kControl);
  const ConnectionId right = host_.connect(0, 8);
  EXPECT_TRUE(host_.say(right, {.kind = FrameKind::kShutdown}));
  EXPECT_TRUE(host_.core.range(0).host().is_finishing());
  EXPECT_FALSE(host_.closed.contains(right));
  expect_chief(right, beats);
}

TEST_F(RefusedChief, MayNotChangeTheStateBeforeItHasPublished) {
  lead();
  for (const FrameKind kind : {FrameKind::kRestore, FrameKind::kPull, FrameKind::kGoodbye}) {
    const ConnectionId wrong = host_.connect(0, 8);
    EXPECT_FALSE(host_.say(wrong, {.kind = kind, .generation = 9}));
    EXPECT_EQ(host_.refused[wrong], "a chief that joins a run has to publish first");
    host_.hang_up(wrong);
  }
  EXPECT_TRUE(host_.closed.empty());
}

TEST_F(RefusedChief, OfAPsThatTrainsWithoutReplicasLeavesNoRangeThere) {
  const ConnectionId chief = host_.connect(0, 7);
  host_.run_to_the_end(chief);
  for (const ChannelPurpose purpose : {ChannelPurpose::kView, ChannelPurpose::kReplica}) {
    EXPECT_THAT(host_.why_refused(host_.hello_of(0, 8, purpose, 1)).value_or(""),
                HasSubstr("--ps_replicas: 2 is not allowed here: ps 0 (ps0:1) trains a run that "
                          "has none"));
  }
  EXPECT_EQ(host_.core.range_count(), 1U);
}

// This ps has just begun. The other one trains a run without replicas, so it has refused the chief
// with replicas.
TEST_F(RefusedChief, WithReplicasDoesNotKeepTheRightOneAway) {
  tell_views(7);
  for (const ConnectionId views : views_) {
    host_.hang_up(views);
  }
  ASSERT_EQ(host_.core.range(0).host().role, net::ReplicaRole::kPrimary);
  ASSERT_EQ(host_.core.range(1).host().role, net::ReplicaRole::kBackup);
  EXPECT_TRUE(publish(host_, host_.connect(0, 8), 1));
  EXPECT_TRUE(host_.refused.empty());
  EXPECT_EQ(host_.core.range(0).host().role, net::ReplicaRole::kOnly);
  EXPECT_TRUE(host_.core.range(1).host().is_unused())
      << "or else this ps waits for the end of its run";
}

// The other range is in a run with replicas, so the chief without replicas is the wrong one.
TEST_F(RefusedChief, WithoutReplicasTakesNoViewFromAPsThatHoldsSomething) {
  tell_views(7);
  const net::Hello primary = {.cluster = {},
                              .from = {.job = net::Job::kPs, .index = 1},
                              .to = task_.self,
                              .purpose = ChannelPurpose::kReplica,
                              .replica = 1,
                              .incarnation = 101};
  const ConnectionId fills = host_.connect(primary);
  RunConfig config = small_run();
  config.ps_replicas = 2;
  const std::string published = to_json(config);
  ASSERT_TRUE(host_.say(fills, net::PublishToBackup{.view = {7, 1}}.to_header(),
                        std::as_bytes(std::span(published))));
  const ConnectionId wrong = host_.connect(0, 8);
  EXPECT_FALSE(publish(host_, wrong, 1));
  EXPECT_THAT(host_.refused[wrong], HasSubstr("a run with another number is under way here"));
  EXPECT_EQ(host_.core.range(0).host().role, net::ReplicaRole::kPrimary);
  EXPECT_EQ(host_.core.range(1).host().role, net::ReplicaRole::kBackup);
  EXPECT_FALSE(host_.closed.contains(fills));
}

TEST_F(RefusedChief, ThatComesAgainAndAgainIsNotTakenForOneThatIsThere) {
  const ConnectionId right = host_.connect(0, 7);
  host_.run_to_the_end(right);
  host_.hang_up(right);
  Membership table(task_, host_.now());
  Outbox out;
  const auto at = [this](int second) { return host_.now() + seconds(second); };
  const auto attach = [&](ConnectionId id, std::uint64_t process, int second) {
    table.attach(0, id, host_.hello_of(0, process, ChannelPurpose::kStep), at(second), out);
  };
  attach(1, 7, 0);
  table.detach(0, 1, at(10));
  for (int second = 20; second < 70; second += 10) {
    const auto process = static_cast<std::uint64_t>(second);
    attach(process, process, second);
    table.disown(0);
    table.detach(0, process, at(second + 1));
  }
  EXPECT_FALSE(table.overdue(at(69)));
  EXPECT_TRUE(table.overdue(at(71))) << "the last one that was let in has been gone for 60 s";
}

// A primary of a run that this host cannot join.
TEST_F(PairedHosts, APrimaryThatIsRefusedLeavesTheCopyOfTheOneBefore) {
  become_a_pair();
  const ConnectionId wrong = second_.connect({.cluster = {},
                                              .from = ps0_.self,
                                              .to = ps1_.self,
                                              .purpose = ChannelPurpose::kReplica,
                                              .replica = 1,
                                              .incarnation = 300});
  RunConfig config = small_run();  // without replicas
  const std::string published = to_json(config);
  EXPECT_FALSE(second_.say(wrong, net::PublishToBackup{.view = {9, 3}}.to_header(),
                           std::as_bytes(std::span(published))));
  EXPECT_TRUE(second_.core.host().holds_state());
  EXPECT_EQ(second_.core.host().view.number, (net::ViewNumber{7, 2}));
  EXPECT_EQ(second_.order.newest(0), 7U);
  EXPECT_FALSE(second_.is_closed(from_first_));
}

// ---- a trainer

class WorkerOfTwoPs : public testing::Test {
 protected:
  using Outcome = RunSession::Outcome;
  static constexpr std::size_t kFloats = 4096;
  static constexpr std::uint64_t kConfiguration = 0x123;

  static Task task_of(std::size_t worker) {
    Task task = task_of_ps(0, 2);
    task.self = {.job = net::Job::kWorker, .index = worker};
    task.incarnation = 7;
    return task;
  }
  // Connected to ps that hold step 5 of generation 3, and about to join.
  void begin_to_join() {
    for (const std::size_t range : {0U, 1U}) {
      world_.host(range).hold(5, 3);
    }
    session().begin_connect(world_.now());
    ASSERT_EQ(world_.go_on(), Outcome::kDone);
    session().prepare({.size = kFloats, .configuration = kConfiguration});
    session().begin_pull(world_.now());
  }
  void join() {
    begin_to_join();
    ASSERT_EQ(world_.go_on(), Outcome::kDone);
    world_.heard();
    world_.dials();
  }
  void begin_push() { session().begin_push_pull(1, false, world_.now()); }
  void expect_failure(const std::string& sentence) {
    ASSERT_EQ(session().outcome(), Outcome::kFailed);
    EXPECT_EQ(session().failure().exit_code(), kLostPeers);
    EXPECT_THAT(session().failure().what(), HasSubstr(sentence));
  }
  [[nodiscard]] RunSession& session() { return world_.session; }

  const Task task_ = task_of(1);
  TrainerWorld world_{task_};
};

TEST_F(WorkerOfTwoPs, NamesTheConfigurationThatItJoinsWith) {
  join();
  begin_to_join();
  world_.go_on();
  for (const ReceivedRequest& each : world_.heard()) {
    EXPECT_EQ(each.header.kind, FrameKind::kPull);
    EXPECT_EQ(each.header.sequence, kConfiguration);
  }
}

TEST_F(WorkerOfTwoPs, IsToldWhereTheRunHasAnotherConfiguration) {
  world_.host(1).is_mute = true;
  begin_to_join();
  ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  world_.say(1, net::Config{.request_id = world_.last_id(1)}.to_header());
  EXPECT_EQ(world_.go_on(), Outcome::kOtherConfiguration);
  EXPECT_FALSE(world_.is_open(0));
  EXPECT_FALSE(world_.is_open(1));
}

TEST_F(WorkerOfTwoPs, IsToldSoAlsoWhereItFetchesTheResult) {
  join();
  world_.host(1).is_mute = true;
  session().begin_fetch_final(world_.now());
  world_.go_on();
  world_.say(1, net::Config{.request_id = world_.last_id(1)}.to_header());
  EXPECT_EQ(world_.go_on(), Outcome::kOtherConfiguration);
  EXPECT_FALSE(session().final_step());
}

// ps 0 has just begun, and has received views of a chief that ps 1 has refused.
TEST_F(WorkerOfTwoPs, DoesNotTakeAPsThatHoldsNothingAtItsWord) {
  world_.host(0).welcome.replica_role = net::ReplicaRole::kPrimary;
  world_.host(1).hold(5, 3);
  session().begin_connect(world_.now());
  EXPECT_EQ(world_.go_on(), Outcome::kDone);
  EXPECT_FALSE(session().is_replicated());
}

TEST_F(WorkerOfTwoPs, ReadsTheConfigurationAgainWhereARunWithoutReplicasIsInThePlaceOfOneWithThem) {
  for (const std::size_t range : {0U, 1U}) {
    world_.host(range).welcome.replica_role = net::ReplicaRole::kPrimary;
  }
  session().expect_replicas(true);
  join();
  world_.host(1).restart(200);
  world_.host(1).welcome.replica_role = net::ReplicaRole::kOnly;
  world_.host(1).hold(0, 9);
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  world_.cut(1);
  EXPECT_EQ(world_.go_on_for(seconds(3)), Outcome::kOtherConfiguration);
}

// ---- repeated failures end the trainer

TEST_F(WorkerOfTwoPs, GivesUpAPsThatAnswersNonsenseWheneverItIsReached) {
  join();
  world_.host(1).talks_nonsense = true;
  begin_push();
  world_.go_on_for(seconds(59));
  EXPECT_EQ(session().outcome(), Outcome::kUnderWay);
  world_.go_on_for(seconds(10));
  expect_failure("ps 1 (ps1:1) has answered nothing that can be used for 60 s");
  EXPECT_LT(world_.dials().size(), 200U) << "with pauses in between";
}

TEST_F(WorkerOfTwoPs, GivesUpAPsThatHangsUpWheneverItIsReached) {
  join();
  world_.host(1).hangs_up = true;
  begin_push();
  world_.go_on_for(seconds(70));
  expect_failure("ps 1 (ps1:1) has been gone for 60 s");
  EXPECT_LT(world_.dials().size(), 200U);
}

TEST_F(WorkerOfTwoPs, WaitsForAPsThatSaysMeanwhileThatItIsAtWork) {
  join();
  world_.host(1).is_mute = true;
  begin_push();
  world_.go_on();
  for (int each = 0; each < 20; ++each) {  // 100 s in all
    world_.cut(1);
    world_.host(1).is_mute = true;
    ASSERT_EQ(world_.go_on_for(seconds(5)), Outcome::kUnderWay);
    world_.say(1, net::Heartbeat{.request_id = world_.last_id(1)}.to_header());
    ASSERT_EQ(world_.go_on(), Outcome::kUnderWay);
  }
}

class ChiefOfTwoPs : public WorkerOfTwoPs {
 protected:
  const Task chief_task_ = task_of(0);
  TrainerWorld chief_{chief_task_};
};

TEST_F(ChiefOfTwoPs, GivesUpAJoinOfWhichAPsIsLostEachTime) {
  RunSession& session = chief_.session;
  session.lead();
  session.begin_connect(chief_.now());
  ASSERT_EQ(chief_.go_on(), Outcome::kDone);
  session.prepare({.size = kFloats, .configuration = kConfiguration});
  session.begin_pull(chief_.now());
  const auto begin = chief_.now();
  while (session.outcome() != Outcome::kFailed && chief_.now() - begin < seconds(1000)) {
    chief_.host(1).dies_of = FrameKind::kRestore;
    if (chief_.go_on_for(seconds(1)) == Outcome::kNeedsState) {
      session.provided(5, chief_.now());
    }
  }
  ASSERT_EQ(session.outcome(), Outcome::kFailed);
  EXPECT_EQ(session.failure().exit_code(), kLostPeers);
  EXPECT_THAT(session.failure().what(), HasSubstr("could not join the run for 300 s"));
  EXPECT_LT(chief_.now() - begin, seconds(310));
}

}  // namespace
}  // namespace disttf::roles
