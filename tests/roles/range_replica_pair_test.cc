// The two hosts of a range: what one sends the other, and what each answers.
#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "tests/roles/range_replica_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::seconds;

// The first gradient makes a step.
class PairsWithABackupWorker : public PairedHosts {
 protected:
  [[nodiscard]] RunConfig run() const override {
    RunConfig config = PairedHosts::run();
    config.replicas_to_aggregate = 1;
    return config;
  }
};

class AsyncPairs : public PairedHosts {
 protected:
  [[nodiscard]] RunConfig run() const override {
    RunConfig config = PairedHosts::run();
    config.sync_replicas = false;
    return config;
  }
};

TEST_F(PairedHosts, NothingIsAnsweredThatTheBackupHasNot) {
  carry();  // the state, and COMPLETE
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  EXPECT_FALSE(first_.take(chief_));
  carry();
  expect_parameters(first_, chief_, 1, -3);
  expect_parameters(first_, other_, 1, -3);
}

TEST_F(PairedHosts, AStepIsExpectedToBeAcknowledgedUntilItIs) {
  EXPECT_FALSE(first_.core.host().expects_ack()) << "the backup is not complete yet";
  carry();
  EXPECT_FALSE(first_.core.host().expects_ack());
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  EXPECT_FALSE(first_.core.host().expects_ack()) << "a step has two gradients";
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  EXPECT_TRUE(first_.core.host().expects_ack());
  carry();
  EXPECT_FALSE(first_.core.host().expects_ack());
  EXPECT_FALSE(second_.core.host().expects_ack());
}

TEST_F(AsyncPairs, NoAcknowledgementIsExpectedSinceOthersCompute) {
  carry();
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  EXPECT_FALSE(first_.core.host().expects_ack());
}

TEST_F(PairedHosts, TheBackupGoesOnBitIdentically) {
  become_a_pair();
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  carry();
  expect_parameters(first_, chief_, 1, -3);
  // The first host is lost before the other trainer has its answer.
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 3}, .primary = 1, .paired = true});
  const ConnectionId again = second_.connect(1, 8);
  ASSERT_TRUE(second_.say(again, push(0), gradient(4)));
  expect_parameters(second_, again, 1, -3);
  const ConnectionId boss = second_.connect(0, 7);
  ASSERT_TRUE(second_.say(again, push(1), gradient(1)));
  ASSERT_TRUE(second_.say(boss, push(1), gradient(3)));
  EXPECT_FALSE(second_.take(again)) << "a pair of which one is left asks the chief first";
  tell(second_, {.number = {7, 4}, .primary = 1, .paired = false});
  expect_parameters(second_, again, 2, -5);
}

// The chief's gradient makes the step, and the other one is late. Then the first host is lost.
TEST_F(PairsWithABackupWorker, TheBackupKnowsWhoseGradientsTheStepsWereMadeOf) {
  become_a_pair();
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  carry();
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 3}, .primary = 1, .paired = false});
  for (const std::size_t rank : {0U, 1U}) {
    const ConnectionId again = second_.connect(rank, 7 + rank);
    ASSERT_TRUE(second_.say(again, push(0), gradient(2)));
    const auto answer = second_.take(again);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ((answer->header.flags & net::kFlagDropped) != 0, rank == 1);
  }
}

TEST_F(PairedHosts, TheBackupKnowsTheBestEvaluation) {
  become_a_pair();
  ASSERT_TRUE(first_.say(chief_, net::Best{.step = 20, .loss = 0.5}.to_header()));
  carry();
  EXPECT_EQ(second_.core.state().best(), (BestEvaluation{.step = 20, .loss = 0.5}));
}

TEST_F(PairedHosts, WhoIsFilledKnowsTheBestEvaluationAndThatTheRunHasEnded) {
  ASSERT_TRUE(first_.say(chief_, net::Best{.step = 20, .loss = 0.5}.to_header()));
  ASSERT_TRUE(first_.say(chief_, net::Pull{.concludes = true}.to_header()));
  first_.hang_up(to_second_);
  second_.hang_up(from_first_);
  to_second_ = first_.connect_to_other();
  from_first_ = second_.connect({.cluster = {},
                                 .from = ps0_.self,
                                 .to = ps1_.self,
                                 .purpose = net::ChannelPurpose::kReplica,
                                 .replica = 1,
                                 .incarnation = ps0_.incarnation});
  carry();
  EXPECT_EQ(second_.core.state().best(), (BestEvaluation{.step = 20, .loss = 0.5}));
  EXPECT_TRUE(second_.core.state().shard()->finished());
}

TEST_F(PairedHosts, AnEarlyStopThatTheBackupHasNotRecordedIsNotReported) {
  become_a_pair();
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  ASSERT_TRUE(first_.say(chief_, net::Pull{.concludes = true}.to_header()));
  EXPECT_FALSE(first_.take(chief_));
  EXPECT_FALSE(first_.take(other_)) << "the step that it pushed for is not made";
  carry();
  for (const ConnectionId each : {chief_, other_}) {
    const auto frame = first_.take(each);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->header.kind, FrameKind::kParameters);
    EXPECT_TRUE((frame->header.flags & net::kFlagFinished) != 0);
  }
  // The first host is lost. The other one makes no step, either.
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 3}, .primary = 1, .paired = true});
  const ConnectionId again = second_.connect(1, 8);
  ASSERT_TRUE(second_.say(again, push(0), gradient(4)));
  EXPECT_EQ(second_.core.state().shard()->step(), 0U);
  EXPECT_TRUE(second_.core.state().shard()->finished());
}

TEST_F(PairedHosts, AnEarlyStopIsSentToABackupOnce) {
  become_a_pair();
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(first_.say(chief_, net::Pull{.concludes = true}.to_header()));
    EXPECT_EQ(first_.take(to_second_).has_value(), times == 0);
  }
}

class UpdatesOfOthers : public PairedHosts {
 protected:
  BodyPlan::Next say_update(std::uint64_t trainers) {
    Bytes body = net::encode(net::UpdateHead{.trainers = {trainers}});
    body.resize(net::padded_update_head_bytes(2));
    const Bytes sum = gradient(1);
    body.insert(body.end(), sum.begin(), sum.end());
    const FrameHeader header{.kind = FrameKind::kUpdate, .request_id = 9, .generation = 1};
    const BodyPlan plan = second_.begin(from_first_, header, body.size());
    std::ranges::copy(std::span(body).first(plan.places[0].size()), plan.places[0].begin());
    return second_.core.body(from_first_, second_.now()).next;
  }
};

TEST_F(UpdatesOfOthers, AreRefusedWhereOneIsNoTrainer) {
  carry();
  EXPECT_EQ(say_update(0b101), BodyPlan::Next::kStop);
}

TEST_F(UpdatesOfOthers, AreRefusedWhereTheyAreTooFew) {
  carry();
  EXPECT_EQ(say_update(0b01), BodyPlan::Next::kStop) << "every gradient counts";
}

TEST_F(UpdatesOfOthers, AreTakenWhereTheyAreTheRuns) {
  carry();
  EXPECT_EQ(say_update(0b11), BodyPlan::Next::kInto);
}

// The primary may have answered with an update that this host has refused.
TEST_F(UpdatesOfOthers, LeaveNoCopyToGoOnWithWhereTheyAreRefused) {
  become_a_pair();
  ASSERT_EQ(say_update(0b101), BodyPlan::Next::kStop);
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 3}, .primary = 1, .paired = true});
  EXPECT_EQ(second_.core.state().shard(), nullptr);
}

TEST_F(PairedHosts, WhoHasHeardNonsenseOfThePrimaryHasNoCopyToGoOnWith) {
  become_a_pair();
  EXPECT_TRUE(second_.core.follows(from_first_));
  EXPECT_FALSE(second_.say(from_first_, {}));
  EXPECT_FALSE(second_.core.follows(from_first_));
  EXPECT_FALSE(second_.last_report(views_[&second_]).holds) << "the chief is notified at once";
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 3}, .primary = 1, .paired = true});
  EXPECT_EQ(second_.core.state().shard(), nullptr);
}

// Updates that the other host takes from memory, also after this host was lost.
class HandedOffUpdate : public PairedHosts {
 protected:
  void make_step() {
    become_a_pair();
    ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
    ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
    const auto update = first_.take(to_second_);
    ASSERT_TRUE(update.has_value());
    ASSERT_EQ(update->header.kind, FrameKind::kUpdate);
    update_ = update->header;
    body_ = std::make_shared<Bytes>(update->body);
    update_.body_size = body_->size();
  }
  FrameHeader update_;
  std::shared_ptr<Bytes> body_;
};

TEST_F(HandedOffUpdate, IsAnsweredBeforeItIsAcknowledged) {
  make_step();
  EXPECT_TRUE(first_.core.host().expects_ack());
  first_.gave(to_second_ + 1, update_.request_id);
  EXPECT_FALSE(first_.take(chief_)) << "to another connection";
  first_.gave(to_second_, update_.request_id);
  EXPECT_FALSE(first_.core.host().expects_ack());
  expect_parameters(first_, chief_, 1, -3);
  expect_parameters(first_, other_, 1, -3);
  EXPECT_TRUE(first_.say(to_second_, net::Ack{update_.request_id}.to_header()));
}

TEST_F(HandedOffUpdate, IsTakenBeforeThePlaceOfThePrimary) {
  make_step();
  std::vector<ConnectionId> asked;
  second_.core.roles().take_rest_with([&](ConnectionId primary) {
    asked.push_back(primary);
    const BodyPlan plan =
        second_.core.header(primary, update_, second_.now(), {.bytes = *body_, .owner = body_});
    EXPECT_EQ(plan.next, BodyPlan::Next::kHeader);
  });
  tell(second_, {.number = {7, 3}, .primary = 1, .paired = false});
  EXPECT_EQ(asked, std::vector<ConnectionId>{from_first_});
  const ConnectionId again = second_.connect(1, 8);
  ASSERT_TRUE(second_.say(again, push(0), gradient(4)));
  expect_parameters(second_, again, 1, -3);
  tell(second_, {.number = {7, 4}, .primary = 1, .paired = false});
  EXPECT_EQ(asked.size(), 1U);
}

// The shell has taken them when the connection ended.
TEST_F(HandedOffUpdate, IsNotAskedForOfAPrimaryThatHasGone) {
  make_step();
  second_.core.roles().take_rest_with([](ConnectionId) { ADD_FAILURE(); });
  second_.core.header(from_first_, update_, second_.now(), {.bytes = *body_, .owner = body_});
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 3}, .primary = 1, .paired = false});
  EXPECT_EQ(second_.core.host().step(), 1U);
}

// The chief has meanwhile chosen another process for the second host. The first host was suspended,
// and has filled this process with an old state.
TEST_F(PairedHosts, ACopyOfAnOlderViewIsNothingToGoOnWith) {
  carry();
  tell(second_, {.number = {7, 4}, .primary = 1});
  EXPECT_EQ(second_.core.state().shard(), nullptr);
  const ConnectionId trainer = second_.connect(1, 8);
  ASSERT_TRUE(second_.say(trainer, push(0), gradient(4)));
  expect(second_, trainer, FrameKind::kFenced);
}

// If the host is then lost, the chief that received the report may be the only process that has
// recorded it.
TEST_F(PairedHosts, AHostSaysWhetherItsViewIsAPair) {
  tell(first_, {.number = {7, 2}, .primary = 0, .paired = true});
  EXPECT_TRUE(first_.last_report(views_[&first_]).paired);
  tell(first_, {.number = {7, 3}, .primary = 0});
  EXPECT_FALSE(first_.last_report(views_[&first_]).paired);
}

// The next chief continues with the view that it finds, under a number of its own. The second host
// may lack that view: it has received everything, but the first has no acknowledgement yet.
TEST_F(PairedHosts, APrimaryThatIsToldTheSameAgainWaitsForItsBackupStill) {
  carry();
  tell(first_, {.number = {8, 1}, .primary = 0});
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  EXPECT_FALSE(first_.take(chief_));
  EXPECT_TRUE(first_.last_report(views_[&first_]).wants_pair);
  carry();
  expect_parameters(first_, chief_, 1, -3);
}

// An earlier chief has let it continue alone.
TEST_F(PairedHosts, APrimaryThatIsToldOfAPairAnswersNothingAlone) {
  first_.hang_up(to_second_);
  tell(first_, {.number = {8, 2}, .primary = 0, .paired = true});
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  EXPECT_FALSE(first_.take(chief_));
  EXPECT_TRUE(first_.last_report(views_[&first_]).wants_alone);
}

// A backup continues with its copy, whichever chief sends the view.
TEST_F(PairedHosts, ABackupThatIsToldTheSameAgainKeepsItsCopy) {
  become_a_pair();
  tell(second_, {.number = {8, 2}, .primary = 0, .paired = true});
  EXPECT_FALSE(second_.is_closed(from_first_));
  EXPECT_TRUE(second_.last_report(views_[&second_]).holds);
  second_.hang_up(from_first_);
  tell(second_, {.number = {8, 3}, .primary = 1});
  EXPECT_TRUE(second_.core.host().holds_state());
}

// The first host continued alone. It and the chief are lost, and the second host has not received
// that view.
TEST_F(PairedHosts, ACopyThatLacksWhatATrainerWasAnsweredIsNoState) {
  become_a_pair();
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 3}, .primary = 1});
  net::Hello hello = hello_to_second(1, 8);
  hello.last = {.generation = 1, .step = 1, .push = 1};
  EXPECT_TRUE(second_.core.roles().lacks(hello));
  hello.last.generation = 2;
  EXPECT_FALSE(second_.core.roles().lacks(hello)) << "of a state that is no more, or not yet here";
  const ConnectionId other = second_.connect(0, 7);
  second_.core.lose_state(second_.now());
  EXPECT_EQ(second_.core.state().shard(), nullptr);
  const auto welcome = std::get<net::Welcome>(second_.core.welcome(hello));
  EXPECT_EQ(welcome.state, net::ShardState::kEmpty);
  const ConnectionId chief = second_.connect(0, 9);
  EXPECT_TRUE(second_.is_closed(other));
  begin_run(second_, chief, run(), 0, /*generation=*/2);
  EXPECT_TRUE(second_.core.host().holds_state());
}

TEST_F(PairedHosts, ACopyThatHasWhatATrainerWasAnsweredIsGoneOnWith) {
  become_a_pair();
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  carry();
  net::Hello hello = hello_to_second(1, 8);
  hello.last = {.generation = 1, .step = 2, .push = 2};
  EXPECT_FALSE(second_.core.roles().lacks(hello)) << "a backup may be behind";
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 3}, .primary = 1});
  EXPECT_TRUE(second_.core.roles().lacks(hello));
  hello.last.step = 1;
  EXPECT_FALSE(second_.core.roles().lacks(hello));
  hello.last.step = 2;
  hello.purpose = net::ChannelPurpose::kControl;
  EXPECT_FALSE(second_.core.roles().lacks(hello));
}

// In an asynchronous run the parameters also contain others' pushes, which may be made again.
TEST_F(AsyncPairs, ACopyLacksATrainersPushAndNoStep) {
  become_a_pair();
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  carry();
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 3}, .primary = 1});
  net::Hello hello = hello_to_second(1, 8);
  hello.last = {.generation = 1, .step = 9, .push = 1};
  EXPECT_FALSE(second_.core.roles().lacks(hello));
  hello.last.push = 2;
  EXPECT_TRUE(second_.core.roles().lacks(hello));
  hello = hello_to_second(0, 7);
  hello.last = {.generation = 1, .step = 9};
  EXPECT_FALSE(second_.core.roles().lacks(hello)) << "it has pulled, and pushed nothing";
  hello.last.push = 1;
  EXPECT_TRUE(second_.core.roles().lacks(hello));
  const ConnectionId again = second_.connect(1, 8);
  for (std::uint64_t step = 1; !second_.core.state().shard()->finished(); ++step) {
    ASSERT_TRUE(second_.say(again, push(step), gradient(1)));
  }
  EXPECT_FALSE(second_.core.roles().lacks(hello)) << "it may have been pushed after the last step";
}

TEST_F(PairedHosts, ABackupThatIsNotCompleteHasNothingToGoOnWith) {
  second_.hang_up(from_first_);
  tell(second_, {.number = {7, 2}, .primary = 1});
  const ConnectionId trainer = second_.connect(1, 8);
  ASSERT_TRUE(second_.say(trainer, push(0), gradient(4)));
  expect(second_, trainer, FrameKind::kFenced);
}

TEST_F(PairedHosts, APrimaryThatWasReplacedServesNoTrainer) {
  carry();
  tell(first_, {.number = {7, 2}, .primary = 1});
  EXPECT_TRUE(first_.is_closed(chief_));
  EXPECT_TRUE(first_.is_closed(other_));
  EXPECT_EQ(first_.core.state().shard(), nullptr);
}

// A replaced primary does not answer requests that wait for a lost or slow backup.
TEST_F(PairedHosts, APrimaryThatWasReplacedAnswersNothingThatTheOtherLacks) {
  carry();
  ASSERT_TRUE(first_.say(chief_, push(0), gradient(2)));
  ASSERT_TRUE(first_.say(other_, push(0), gradient(4)));
  tell(first_, {.number = {7, 2}, .primary = 1});
  EXPECT_FALSE(first_.take(chief_));
  EXPECT_FALSE(first_.take(other_));
}

// Its open connections still work, but new ones, including the chief's for views, reach the process
// that has replaced it. Its trainers would wait for ever.
TEST_F(PairedHosts, APrimaryThatTheChiefNoLongerTellsViewsSendsItsTrainersAway) {
  carry();
  first_.hang_up(to_second_);
  first_.pass(seconds(9));
  EXPECT_TRUE(first_.say(chief_, {.kind = FrameKind::kHeartbeat}));
  EXPECT_TRUE(first_.say(other_, {.kind = FrameKind::kHeartbeat}));
  first_.hang_up(views_[&first_]);
  for (int second = 0; second < 9; ++second) {
    first_.pass(seconds(1));
    EXPECT_TRUE(first_.say(chief_, {.kind = FrameKind::kHeartbeat}));
    EXPECT_TRUE(first_.say(other_, {.kind = FrameKind::kHeartbeat}));
  }
  EXPECT_FALSE(first_.is_closed(other_)) << "it may connect again";
  first_.pass(seconds(1));
  EXPECT_TRUE(first_.is_closed(chief_));
  EXPECT_TRUE(first_.is_closed(other_));
}

TEST_F(PairedHosts, APrimaryWhoseChiefIsLostKeepsItsTrainers) {
  carry();
  first_.hang_up(to_second_);
  first_.hang_up(views_[&first_]);
  first_.hang_up(chief_);
  for (int second = 0; second < 30; ++second) {
    first_.pass(seconds(1));
    EXPECT_TRUE(first_.say(other_, {.kind = FrameKind::kHeartbeat}));
  }
  first_.connect(0, 77);  // its views follow
  first_.pass(seconds(1));
  EXPECT_FALSE(first_.is_closed(other_));
}

// Otherwise the chief would make no more views of the range.
TEST_F(PairedHosts, OneThatHasFailedDoesNotSayThatTheRunIsOver) {
  carry();
  first_.core.refuse_all({.exit_code = kLostPeers, .sentence = "worker 1 has been gone"});
  first_.hang_up(to_second_);
  EXPECT_FALSE(first_.last_report(views_[&first_]).finished);
}

}  // namespace
}  // namespace disttf::roles
