// What a primary sends the other host of its range, and how it handles the answers.
// The second half tests how the other host handles the frames.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/wire/replication.h"
#include "roles/ps/core/backup_receiver.h"
#include "roles/ps/core/backup_sender.h"
#include "tests/roles/replica_host.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

using net::FrameKind;
using Heard = BackupSender::Heard;

constexpr ConnectionId kOtherHost = 5;

class BackupSenderTest : public testing::Test {
 protected:
  BackupSenderTest() {
    RunConfig config = small_run();
    config.ps_replicas = 2;
    state_.begin_run(config, to_json(config));
    for (const std::span<float> place : state_.begin_restore(/*parameters_only=*/true)) {
      std::ranges::fill(place, 0.0F);
    }
    state_.finish_restore(0, 7);
    sender_.begin(/*paired=*/false);
  }
  // Returns the frames that were sent since the last call. Also handles the connections that were
  // closed in between.
  std::vector<FrameKind> sent() {
    std::vector<FrameKind> kinds;
    out_.drain([&](const auto& effect) { note(effect, kinds); });
    return kinds;
  }
  // The other host acknowledges everything sent so far.
  Heard acknowledge() { return sender_.heard(net::Ack{sender_.head()}.to_header()); }
  void complete() {
    sender_.fill(kOtherHost, {});
    ASSERT_EQ(acknowledge(), Heard::kAck);
    ASSERT_EQ(acknowledge(), Heard::kCompleted);
    sent();
  }
  void step(std::uint64_t number) {
    push(*state_.shard(), 0, number, 1.0F);
    push(*state_.shard(), 1, number, 1.0F);
  }

  Task task_ = task_of_ps(0, 2);
  RangeState state_{task_, 0, 1, {}, [this](const ShardUpdate& each) { sender_.forward(each); }};
  Outbox out_;
  BackupSender sender_{state_, out_};
  bool is_closed_ = false;

 private:
  static void note(const SendFrame& effect, std::vector<FrameKind>& kinds) {
    EXPECT_EQ(effect.to, kOtherHost);
    kinds.push_back(effect.header.kind);
  }
  void note(const CloseConnection&, std::vector<FrameKind>&) { is_closed_ = true; }
  void note(const FinishConnection&, std::vector<FrameKind>&) { is_closed_ = true; }
  static void note(const auto&, std::vector<FrameKind>&) {
    ADD_FAILURE() << "no test expects this effect";
  }
};

TEST_F(BackupSenderTest, FillsTheOtherHostAndSaysWhenItHasEverything) {
  sender_.fill(kOtherHost, {});
  EXPECT_EQ(sent(), (std::vector{FrameKind::kPublish, FrameKind::kFill}));
  EXPECT_EQ(acknowledge(), Heard::kAck);
  EXPECT_EQ(sent(), std::vector{FrameKind::kComplete});
  EXPECT_FALSE(sender_.is_complete());
  EXPECT_EQ(acknowledge(), Heard::kCompleted);
  EXPECT_TRUE(sender_.is_complete());
}

TEST_F(BackupSenderTest, SendsEachUpdateToTheConnectedBackup) {
  step(0);
  EXPECT_TRUE(sent().empty()) << "no backup is connected";
  complete();
  step(1);
  EXPECT_EQ(sent(), std::vector{FrameKind::kUpdate});
}

TEST_F(BackupSenderTest, AnAnswerIsSafeOnceTheOtherHostHasWhatItTells) {
  complete();
  step(0);
  EXPECT_FALSE(sender_.is_safe(sender_.head()));
  EXPECT_EQ(acknowledge(), Heard::kAck);
  EXPECT_TRUE(sender_.is_safe(sender_.head()));
}

TEST_F(BackupSenderTest, ThatTheRunHasEndedIsSafeOnceTheOtherHostKnows) {
  complete();
  state_.shard()->conclude();
  sender_.conclude();
  EXPECT_EQ(sent(), std::vector{FrameKind::kConclude});
  EXPECT_FALSE(sender_.is_safe(sender_.head()));
  EXPECT_EQ(acknowledge(), Heard::kAck);
  EXPECT_TRUE(sender_.is_safe(sender_.head()));
}

TEST_F(BackupSenderTest, ABackupThatIsLostMayStillBeChosenInstead) {
  complete();
  step(0);
  EXPECT_TRUE(sender_.lose());
  sent();
  EXPECT_TRUE(is_closed_);
  EXPECT_FALSE(sender_.is_complete());
  EXPECT_FALSE(sender_.is_safe(sender_.head()));
  sender_.go_alone();
  EXPECT_TRUE(sender_.is_safe(sender_.head()));
  EXPECT_FALSE(sender_.lose()) << "there is none any more";
}

TEST_F(BackupSenderTest, WhatIsNoAnswerIsNonsense) {
  complete();
  EXPECT_EQ(sender_.heard(net::Heartbeat{}.to_header()), Heard::kNothing);
  EXPECT_EQ(sender_.heard(net::Ack{sender_.head() + 1}.to_header()), Heard::kNonsense)
      << "of an entry that was never sent";
  EXPECT_EQ(sender_.heard(net::Shutdown{}.to_header()), Heard::kNonsense);
  net::FrameHeader with_body = net::Ack{sender_.head()}.to_header();
  with_body.body_size = 1;
  EXPECT_EQ(sender_.heard(with_body), Heard::kNonsense);
}

TEST_F(BackupSenderTest, TheEndIsTheLastThingThatItTells) {
  EXPECT_EQ(sender_.end(), 0) << "no backup is connected";
  complete();
  EXPECT_EQ(sender_.end(), kOtherHost);
  EXPECT_EQ(sent(), std::vector{FrameKind::kShutdown});
  EXPECT_TRUE(is_closed_);
  EXPECT_EQ(sender_.connection(), 0);
}

// How a backup handles the frames of its primary, and which it rejects.

using net::FrameHeader;
using ::testing::ElementsAre;

using Bytes = std::vector<std::byte>;
using Read = BackupReceiver::Read;
using Filled = BackupReceiver::Filled;
using Updated = BackupReceiver::Updated;
using Refused = BackupReceiver::Refused;

constexpr math::Range kRange{.begin = 4, .end = 6};
constexpr net::Generation kGeneration = 3;
constexpr std::uint64_t kBothTrainers = 0b11;

void append(Bytes& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// A copy of a range of two floats, in a run with two trainers and four steps.
class BackupReceiverTest : public testing::Test {
 protected:
  // Passes a frame in parts. Returns the outcome of the last part.
  BackupReceiver::Outcome give(FrameHeader header, const Bytes& body) {
    header.body_size = body.size();
    BackupReceiver::Outcome outcome = header.kind == FrameKind::kFill
                                          ? receiver_.fill(header, shard_)
                                          : receiver_.update(header, shard_, {});
    std::span<const std::byte> rest = body;
    while (std::holds_alternative<Read>(outcome)) {
      for (const std::span<std::byte> place : std::get<Read>(outcome).places) {
        std::ranges::copy(rest.first(place.size()), place.begin());
        rest = rest.subspan(place.size());
      }
      outcome = receiver_.part();
    }
    return outcome;
  }
  static net::BodyInPlace in_memory(const Bytes& body) {
    const auto memory = std::make_shared<const Bytes>(body);
    return {.bytes = *memory, .owner = memory};
  }
  static FrameHeader fill_header() {
    return {.kind = FrameKind::kFill,
            .request_id = 1,
            .step = 2,
            .range_begin = kRange.begin,
            .generation = kGeneration};
  }
  static FrameHeader update_header(std::uint64_t step) {
    return {.kind = FrameKind::kUpdate,
            .request_id = 2,
            .step = step,
            .range_begin = kRange.begin,
            .generation = kGeneration};
  }
  static Bytes state(const std::vector<Values>& tensors, std::uint32_t trainers = 2) {
    Bytes body = net::encode(net::FillHead{.lineage = 77,
                                           .counters = {9, 8, 0, 0, 0, 0},
                                           .trainers = trainers,
                                           .tensors = static_cast<std::uint32_t>(tensors.size())});
    for (std::uint64_t rank = 0; rank < trainers; ++rank) {
      append(body, net::encode(net::FillTrainer{.incarnation = 20 + rank}));
    }
    for (const Values& values : tensors) {
      append(body, std::as_bytes(std::span(values)));
    }
    return body;
  }
  static Bytes sum(const Values& gradient, std::uint64_t trainers = kBothTrainers) {
    Bytes body = net::encode(net::UpdateHead{.trainers = {trainers}});
    body.resize(net::padded_update_head_bytes(1));
    append(body, std::as_bytes(std::span(gradient)));
    return body;
  }
  void fill() { ASSERT_TRUE(std::holds_alternative<Filled>(give(fill_header(), state({{1, 2}})))); }
  // Returns "" if the frame was accepted, otherwise the refusal.
  std::string refusal(const FrameHeader& header, const Bytes& body) {
    const BackupReceiver::Outcome outcome = give(header, body);
    const auto* const refused = std::get_if<Refused>(&outcome);
    return refused == nullptr ? "" : refused->why;
  }

  std::shared_ptr<Shard> shard_ = std::make_shared<Shard>(sgd_config(2, /*train_steps=*/4), kRange);
  BackupReceiver receiver_;
};

// ---- the state ----

TEST_F(BackupReceiverTest, TakesAStateWhole) {
  const BackupReceiver::Outcome outcome = give(fill_header(), state({{1, 2}}));
  ASSERT_TRUE(std::holds_alternative<Filled>(outcome));
  const auto& filled = std::get<Filled>(outcome);
  EXPECT_EQ(filled.step, 2U);
  EXPECT_EQ(filled.generation, kGeneration);
  EXPECT_EQ(filled.lineage, 77U);
  EXPECT_THAT(filled.incarnations, ElementsAre(20, 21));
  EXPECT_EQ(values_of(shard_->parameters()), (Values{1, 2}));
  EXPECT_EQ(shard_->step(), 2U);
  EXPECT_EQ(shard_->counters().applied, 8U);
  EXPECT_TRUE(receiver_.is_filled());
  EXPECT_FALSE(receiver_.is_complete());
}

TEST_F(BackupReceiverTest, TheParametersOfTheStepBeforeComeAlong) {
  ASSERT_EQ(refusal(fill_header(), state({{1, 2}, {3, 4}})), "");
  ASSERT_TRUE(shard_->previous());
  EXPECT_EQ(values_of(shard_->previous()->parameters), (Values{3, 4}));
}

TEST_F(BackupReceiverTest, RefusesAStateThatIsNotOfTheRange) {
  EXPECT_EQ(refusal(fill_header(), Bytes(net::kBodyBytes<net::FillHead> - 1)),
            "not the state of a range");
  FrameHeader elsewhere = fill_header();
  elsewhere.range_begin = 0;
  for (const auto& [header, body] :
       {std::pair(elsewhere, state({{1, 2}})), std::pair(fill_header(), state({{1, 2, 3}})),
        std::pair(fill_header(), state({{1, 2}}, 3)), std::pair(fill_header(), state({})),
        std::pair(fill_header(), state({{1, 2}, {3, 4}, {5, 6}}))}) {
    EXPECT_EQ(refusal(header, body), "the state of another range");
    EXPECT_FALSE(receiver_.is_filled());
  }
}

TEST_F(BackupReceiverTest, AStateThatComesAnewMakesTheCopyNothingUntilItIsThere) {
  fill();
  ASSERT_TRUE(receiver_.complete(kGeneration));
  FrameHeader header = fill_header();
  header.body_size = state({{1, 2}}).size();
  ASSERT_TRUE(std::holds_alternative<Read>(receiver_.fill(header, shard_)));
  EXPECT_FALSE(receiver_.is_filled());
  EXPECT_FALSE(receiver_.is_complete());
  EXPECT_FALSE(receiver_.complete(kGeneration));
}

// Another run that begins needs the memory.
TEST_F(BackupReceiverTest, KeepsTheShardNoLongerThanAFrame) {
  fill();
  ASSERT_EQ(refusal(update_header(2), sum({1, 1})), "");
  EXPECT_EQ(shard_.use_count(), 1);
}

// ---- updates ----

TEST_F(BackupReceiverTest, MakesTheUpdatesThatFollow) {
  fill();
  const BackupReceiver::Outcome outcome = give(update_header(2), sum({2, 4}));
  ASSERT_TRUE(std::holds_alternative<Updated>(outcome));
  EXPECT_EQ(shard_->step(), 3U);
  EXPECT_EQ(values_of(shard_->parameters()), (Values{0, 0}));
}

TEST_F(BackupReceiverTest, SaysWhoseGradientItWas) {
  shard_ = std::make_shared<Shard>(async_config(70), kRange);
  ASSERT_TRUE(std::holds_alternative<Filled>(give(fill_header(), state({{1, 2}}, 70))));
  Bytes body = net::encode(net::UpdateHead{.incarnation = 5, .trainers = {0, 0b100}});
  body.resize(net::padded_update_head_bytes(70));
  const Values gradient{1, 1};
  append(body, std::as_bytes(std::span(gradient)));
  FrameHeader header = update_header(0);
  header.sequence = 6;
  const BackupReceiver::Outcome outcome = give(header, body);
  ASSERT_TRUE(std::holds_alternative<Updated>(outcome));
  EXPECT_EQ(std::get<Updated>(outcome).trainer, 66U);
  EXPECT_EQ(std::get<Updated>(outcome).incarnation, 5U);
  EXPECT_EQ(shard_->identity().trainers[66].last_sequence, 6U);
}

TEST_F(BackupReceiverTest, AnUpdateInMemoryIsReadThere) {
  fill();
  FrameHeader header = update_header(2);
  const Bytes body = sum({2, 4});
  header.body_size = body.size();
  ASSERT_TRUE(std::holds_alternative<Updated>(receiver_.update(header, shard_, in_memory(body))));
  EXPECT_EQ(shard_->step(), 3U);
  EXPECT_EQ(values_of(shard_->parameters()), (Values{0, 0}));
  header.step = 3;
  EXPECT_TRUE(std::holds_alternative<Refused>(
      receiver_.update(header, shard_, in_memory(sum({2, 4}, /*trainers=*/0b101)))));
  EXPECT_EQ(shard_->step(), 3U);
}

// The update is not applied before it is needed.
TEST_F(BackupReceiverTest, AnUpdateInMemoryMayHaveTheStateThatItIsMadeFrom) {
  fill();
  FrameHeader header = update_header(2);
  Bytes body = sum({2, 4});
  Values tensors(shard_->storage().update_size_with_state());
  tensors[0] = 2;  // of two gradients
  tensors[shard_->storage().padded_size()] = 10;
  tensors[shard_->storage().padded_size() + 1] = 20;
  body.resize(net::padded_update_head_bytes(2));
  append(body, std::as_bytes(std::span(tensors)));
  header.body_size = body.size();
  net::BodyInPlace place = in_memory(body);
  ASSERT_TRUE(std::holds_alternative<Updated>(receiver_.update(header, shard_, place)));
  EXPECT_EQ(shard_->step(), 3U);
  EXPECT_GT(place.owner.use_count(), 1) << "it keeps the memory";
  const std::vector<std::span<const float>> caught_up = shard_->tensors();
  EXPECT_EQ(values_of(caught_up.front()), (Values{9, 20}));
  EXPECT_EQ(place.owner.use_count(), 1);

  EXPECT_EQ(refusal(update_header(3), body), "an update of another state") << "it is not in memory";
}

TEST_F(BackupReceiverTest, RefusesAHeadWithAnythingButZerosBehindIt) {
  fill();
  Bytes body = sum({2, 4});
  body[net::update_head_bytes(2)] = std::byte{1};
  EXPECT_EQ(refusal(update_header(2), body), "an update that does not follow the last one");
}

TEST_F(BackupReceiverTest, RefusesAnUpdateOfAnotherState) {
  const std::string why = "an update of another state";
  EXPECT_EQ(refusal(update_header(2), sum({1, 1})), why) << "it has none";
  fill();
  FrameHeader elsewhere = update_header(2);
  elsewhere.range_begin = 0;
  EXPECT_EQ(refusal(elsewhere, sum({1, 1})), why);
  FrameHeader older = update_header(2);
  older.generation = kGeneration - 1;
  EXPECT_EQ(refusal(older, sum({1, 1})), why);
  EXPECT_EQ(refusal(update_header(2), sum({1, 1, 1})), why);
}

TEST_F(BackupReceiverTest, RefusesAnUpdateThatDoesNotFollow) {
  const std::string why = "an update that does not follow the last one";
  fill();
  EXPECT_EQ(refusal(update_header(1), sum({1, 1})), why);
  EXPECT_EQ(refusal(update_header(3), sum({1, 1})), why);
  EXPECT_EQ(refusal(update_header(2), sum({1, 1}, 0b101)), why) << "there is no trainer 2";
  EXPECT_EQ(refusal(update_header(2), sum({1, 1}, 0b01)), why) << "every gradient counts";
  for (const std::uint64_t step : {2U, 3U}) {
    EXPECT_EQ(refusal(update_header(step), sum({1, 1})), "");
  }
  EXPECT_EQ(refusal(update_header(4), sum({1, 1})), why) << "it was the last step";
}

// ---- complete ----

TEST_F(BackupReceiverTest, IsCompleteOnceItIsFilledWithThatState) {
  EXPECT_FALSE(receiver_.complete(kGeneration));
  fill();
  EXPECT_FALSE(receiver_.complete(kGeneration + 1));
  EXPECT_FALSE(receiver_.is_complete());
  EXPECT_TRUE(receiver_.complete(kGeneration));
  EXPECT_TRUE(receiver_.is_complete());
}

// ---- conclude ----

TEST_F(BackupReceiverTest, TakesTheEndOfTheRunAtTheStepThatItHolds) {
  net::Conclude conclude{.entry = 9, .step = 2, .generation = kGeneration};
  EXPECT_FALSE(receiver_.conclude(conclude, *shard_)) << "it holds nothing";
  fill();
  conclude.step = 3;
  EXPECT_FALSE(receiver_.conclude(conclude, *shard_));
  conclude.step = 2;
  conclude.generation = kGeneration + 1;
  EXPECT_FALSE(receiver_.conclude(conclude, *shard_));
  EXPECT_FALSE(shard_->finished());
  conclude.generation = kGeneration;
  EXPECT_TRUE(receiver_.conclude(conclude, *shard_));
  EXPECT_TRUE(shard_->finished());
  EXPECT_EQ(refusal(update_header(2), sum({1, 1})), "an update that does not follow the last one");
}

}  // namespace
}  // namespace disttf::roles
