// Trainers of one host that push one sum, as a ps handles them: which trainer may push for which,
// what each is answered, and peer discovery on a host.
#include <gmock/gmock.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/roles/range_replica_fixture.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using ::testing::HasSubstr;

// A ps of a cluster with these hosts, with a worker for each letter.
Task task_of_hosts(const std::string& letters) {
  Task task = task_of_ps(0);
  task.cluster.workers.clear();
  for (std::size_t rank = 0; rank < letters.size(); ++rank) {
    task.cluster.workers.push_back(
        {.host = std::string(1, letters[rank]), .port = static_cast<std::uint16_t>(10 + rank)});
  }
  return task;
}

class HostGroupsOf : public RangeReplicaTest {
 protected:
  explicit HostGroupsOf(const std::string& letters) : hosts_(task_of_hosts(letters)) {}

  [[nodiscard]] RunConfig run(std::uint64_t train_steps = 3) const {
    RunConfig config = small_run(train_steps);
    config.trainers = trainers_.size();
    return config;
  }
  void begin(const RunConfig& config, std::uint64_t step = 0, net::Generation generation = 1) {
    for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
      if (trainers_[rank] == 0) {
        trainers_[rank] = ps_.connect(rank, 7 + rank);
      }
    }
    begin_run(ps_, trainers_[0], config, step, generation);
  }
  static FrameHeader sum(std::uint64_t step, net::Generation generation = 1) {
    FrameHeader header = push(step, generation);
    header.flags |= net::kFlagGroupSum;
    return header;
  }
  // Trainer `rank` pushes its own gradient, whose values all equal rank + 1.
  bool push_own(std::size_t rank, std::uint64_t step = 0) {
    return ps_.say(trainers_[rank], push(step), gradient(static_cast<float>(rank + 1)));
  }
  // The trainer pushes the sum of `count` trainers.
  bool push_sum(std::size_t rank, std::size_t count, std::uint64_t step = 0) {
    float value = 0;
    for (std::size_t each = rank; each < rank + count; ++each) {
      value += static_cast<float>(each + 1);
    }
    return ps_.say(trainers_[rank], sum(step), gradient(value));
  }
  // The trainer's gradient is in a sum that its leader pushes.
  bool push_in_sum(std::size_t rank, std::uint64_t step = 0) {
    return ps_.begin(trainers_[rank], sum(step), 0).next == BodyPlan::Next::kHeader;
  }

  // Expects the parameters of that step, which all equal `value`, or a notice of them without a
  // body.
  void expect_answer(std::size_t rank, std::uint64_t step, std::optional<float> value) {
    const auto frame = ps_.take(trainers_[rank]);
    ASSERT_TRUE(frame.has_value()) << rank;
    net::Parameters parameters;
    ASSERT_FALSE(parameters.from_header(frame->header)) << rank;
    EXPECT_EQ(parameters.request_id, 10 + step - 1) << rank;
    EXPECT_EQ(parameters.step, step) << rank;
    EXPECT_EQ(parameters.generation, 1U) << rank;
    EXPECT_FALSE(parameters.dropped) << rank;
    EXPECT_EQ(parameters.group_sum, !value) << rank;
    EXPECT_EQ(frame->body, value ? gradient(*value) : Bytes()) << rank;
  }
  void expect_refused(std::size_t rank, const std::string& sentence) {
    EXPECT_EQ(ps_.refused().contains(trainers_[rank]) ? ps_.refused().at(trainers_[rank]) : "",
              sentence)
        << rank;
  }
  [[nodiscard]] const Shard& shard() { return *ps_.core.state().shard(); }

  // Returns the ps's answer: where the leader is.
  [[nodiscard]] net::PeerDiscovery ask_discovery(ConnectionId id, std::uint64_t listener_name = 0,
                                                 std::uint64_t token = 0) {
    EXPECT_TRUE(ps_.say(
        id,
        net::PeerDiscovery{.request_id = ++asked_, .listener_name = listener_name, .token = token}
            .to_header()));
    const auto frame = ps_.take(id);
    net::PeerDiscovery answer;
    EXPECT_TRUE(frame.has_value() && !answer.from_header(frame->header));
    EXPECT_EQ(answer.request_id, asked_);
    answer.request_id = 0;
    return answer;
  }

  const Task hosts_;
  ReplicaHost ps_{hosts_};
  std::vector<ConnectionId> trainers_ =
      std::vector<ConnectionId>(hosts_.cluster.trainer_count());  // by rank; 0: not connected
  std::uint64_t asked_ = 100;
};

// Trainers 0 and 1 on one host, 2 and 3 on another. The mean of their gradients is 2.5.
class TwoHosts : public HostGroupsOf {
 protected:
  TwoHosts() : HostGroupsOf("aabb") {}
};

TEST_F(TwoHosts, OneSumOfEachMakesTheStepAndOneAnswerHasABody) {
  begin(run());
  ASSERT_TRUE(push_sum(0, 2));
  ASSERT_TRUE(push_in_sum(1));
  ASSERT_TRUE(push_in_sum(3));
  for (const std::size_t rank : {0U, 1U, 3U}) {
    EXPECT_FALSE(ps_.take(trainers_[rank])) << "a sum is missing";
  }
  ASSERT_TRUE(push_sum(2, 2));
  expect_answer(0, 1, -2.5F);
  expect_answer(1, 1, std::nullopt);
  expect_answer(2, 1, -2.5F);
  expect_answer(3, 1, std::nullopt);
  EXPECT_EQ(shard().counters().pushes, 4U);
  EXPECT_EQ(shard().counters().applied, 4U);
  EXPECT_EQ(shard().counters().repeats, 0U);
}

TEST_F(TwoHosts, WhoSaysThatItIsInASumOfAStepThatHasBeenMadeIsAnsweredAtOnce) {
  begin(run());
  ASSERT_TRUE(push_sum(2, 2));
  ASSERT_TRUE(push_sum(0, 2));
  expect_answer(2, 1, -2.5F);
  ASSERT_TRUE(push_in_sum(3));
  expect_answer(3, 1, std::nullopt);
  ASSERT_TRUE(push_in_sum(3)) << "its answer was lost";
  expect_answer(3, 1, std::nullopt);
  EXPECT_EQ(shard().counters().repeats, 0U);
}

TEST_F(TwoHosts, OneHostMayPushASumAndTheOtherNot) {
  begin(run());
  ASSERT_TRUE(push_in_sum(1));
  ASSERT_TRUE(push_own(2));
  ASSERT_TRUE(push_sum(0, 2));
  ASSERT_TRUE(push_own(3));
  expect_answer(0, 1, -2.5F);
  expect_answer(1, 1, std::nullopt);
  expect_answer(2, 1, -2.5F);
  expect_answer(3, 1, -2.5F);
}

// The member cannot tell whether the leader pushed the sum to this ps before it was lost.
TEST_F(TwoHosts, AMemberWhoseLeaderHasGonePushesItsOwnAndIsSentTheBody) {
  begin(run());
  ASSERT_TRUE(push_in_sum(1));
  ps_.hang_up(trainers_[0]);
  ps_.hang_up(trainers_[1]);
  trainers_[1] = ps_.connect(1, 8);
  ASSERT_TRUE(push_own(1));
  ASSERT_TRUE(push_sum(2, 2));
  EXPECT_FALSE(ps_.take(trainers_[1])) << "the leader's is missing";
  trainers_[0] = ps_.connect(0, 70);
  ASSERT_TRUE(push_own(0));
  expect_answer(0, 1, -2.5F);
  expect_answer(1, 1, -2.5F);
}

TEST_F(TwoHosts, TheSameWhereTheSumHasCome) {
  begin(run());
  ASSERT_TRUE(push_sum(0, 2));
  ASSERT_TRUE(push_in_sum(1));
  ps_.hang_up(trainers_[0]);
  ps_.hang_up(trainers_[1]);
  trainers_[1] = ps_.connect(1, 8);
  ASSERT_TRUE(push_own(1));
  EXPECT_EQ(shard().counters().repeats, 1U);
  ASSERT_TRUE(push_sum(2, 2));
  expect_answer(1, 1, -2.5F);
}

TEST_F(TwoHosts, ASumOfAnOlderStateIsFencedWithABodyAndWithout) {
  begin(run());
  begin(run(), 0, 2);
  ASSERT_TRUE(push_in_sum(1));
  expect(ps_, trainers_[1], FrameKind::kFenced);
  ASSERT_TRUE(push_sum(0, 2));
  expect(ps_, trainers_[0], FrameKind::kFenced);
  EXPECT_EQ(shard().policy().missing().size(), 4U);
}

// A restore came in between: neither the sum nor the waiting requests are of this state.
TEST_F(TwoHosts, ASumThatARestoreOvertakesIsFenced) {
  begin(run());
  const BodyPlan plan = ps_.begin(trainers_[2], sum(0), size_ * sizeof(float));
  ASSERT_TRUE(push_in_sum(3));
  begin(run(), 0, 2);
  EXPECT_TRUE(ps_.deliver(trainers_[2], plan, gradient(7)));
  expect(ps_, trainers_[2], FrameKind::kFenced);
  expect(ps_, trainers_[3], FrameKind::kFenced);
  EXPECT_EQ(shard().policy().missing().size(), 4U);
}

// From a leader that shares memory with the ps.
TEST_F(TwoHosts, ASumIsReadWhereItLies) {
  begin(run());
  ASSERT_TRUE(push_sum(0, 2));
  const auto memory = std::make_shared<Bytes>(gradient(7));
  FrameHeader header = sum(0);
  header.body_size = memory->size();
  const BodyPlan plan =
      ps_.core.header(trainers_[2], header, ps_.now(), {.bytes = *memory, .owner = memory});
  EXPECT_EQ(plan.next, BodyPlan::Next::kHeader);
  ps_.pass(ReplicaHost::Seconds(1));  // handles its effects
  expect_answer(0, 1, -2.5F);
  expect_answer(2, 1, -2.5F);
}

// After the last step all are answered with and without a body, as at any other step.
TEST_F(TwoHosts, TheLastStepIsAnsweredAsAnyOther) {
  begin(run(1));
  ASSERT_TRUE(push_in_sum(1));
  ASSERT_TRUE(push_sum(0, 2));
  ASSERT_TRUE(push_sum(2, 2));
  ASSERT_TRUE(push_in_sum(3));
  for (const std::size_t rank : {1U, 3U}) {
    const auto frame = ps_.take(trainers_[rank]);
    ASSERT_TRUE(frame.has_value());
    EXPECT_EQ(frame->header.flags, net::kFlagFinished | net::kFlagGroupSum);
    EXPECT_TRUE(frame->body.empty());
  }
}

// ---- refused sums ----

struct OtherRun {
  const char* name;
  RunConfig config;
};
void PrintTo(const OtherRun& run, std::ostream* out) { *out << run.name; }

std::vector<OtherRun> other_runs() {
  std::vector<OtherRun> all{{"Async", small_run()},          {"Elastic", small_run()},
                            {"BackupWorkers", small_run()},  {"Bfloat16", small_run()},
                            {"Int8", small_run()},           {"TopK", small_run()},
                            {"MaxGradientNorm", small_run()}};
  all[0].config.sync_replicas = false;
  all[1].config.micro_batches = 4;
  all[1].config.min_workers = 1;
  all[2].config.replicas_to_aggregate = 3;
  all[3].config.wire_dtype = WireDtype::kBf16;
  all[4].config.wire_dtype = WireDtype::kInt8;
  all[5].config.top_k = 0.1F;
  all[6].config.max_gradient_norm = 1;
  for (OtherRun& each : all) {
    each.config.trainers = 4;
  }
  return all;
}

class SumInAnotherRun : public TwoHosts, public testing::WithParamInterface<OtherRun> {};
INSTANTIATE_TEST_SUITE_P(Runs, SumInAnotherRun, testing::ValuesIn(other_runs()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(SumInAnotherRun, IsRefusedWithABodyAndWithout) {
  begin(GetParam().config);
  const std::string sentence = "a sum of gradients in a run that does not use group sums";
  EXPECT_FALSE(push_sum(2, 2));
  expect_refused(2, sentence);
  EXPECT_FALSE(push_in_sum(1));
  expect_refused(1, sentence);
  EXPECT_EQ(shard().counters().pushes, 0U);
}

// As many gradients are aggregated as there are trainers: every gradient counts.
TEST_F(TwoHosts, ASumIsTakenWhereNoneIsABackup) {
  RunConfig config = run();
  config.replicas_to_aggregate = 4;
  begin(config);
  ASSERT_TRUE(push_in_sum(1));
  ASSERT_TRUE(push_sum(0, 2));
  ASSERT_TRUE(push_sum(2, 2));
  expect_answer(0, 1, -2.5F);
  expect_answer(1, 1, std::nullopt);
}

TEST_F(TwoHosts, AMembersSumIsRefused) {
  begin(run());
  EXPECT_FALSE(push_sum(3, 1));
  expect_refused(3, "a sum of gradients from another trainer of the host than the first");
  EXPECT_EQ(shard().policy().missing().size(), 4U);
}

// Nor does it pass as the request of a member, which has no body.
TEST_F(TwoHosts, ALeadersSumOfAnotherSizeIsRefused) {
  begin(run());
  EXPECT_FALSE(ps_.say(trainers_[0], sum(0)));
  EXPECT_THAT(ps_.refused().at(trainers_[0]), HasSubstr("0 bytes"));
  EXPECT_FALSE(ps_.say(trainers_[2], sum(0), Bytes(size_ * sizeof(float) - 4)));
  EXPECT_THAT(ps_.refused().at(trainers_[2]),
              HasSubstr(std::to_string(size_ * sizeof(float) - 4) + " bytes"));
  EXPECT_EQ(shard().policy().missing().size(), 4U);
}

TEST_F(TwoHosts, APushOfAMicroBatchIsNoSum) {
  begin(run());
  FrameHeader header = sum(0);
  header.kind = FrameKind::kPush;
  EXPECT_FALSE(ps_.say(trainers_[1], header));
  EXPECT_TRUE(ps_.refused().contains(trainers_[1]));
  EXPECT_FALSE(ps_.say(trainers_[2], header, gradient(1)));
  EXPECT_TRUE(ps_.refused().contains(trainers_[2]));
}

TEST_F(TwoHosts, ASumOfAStepToComeIsRefused) {
  begin(run());
  EXPECT_FALSE(push_in_sum(1, 1));
  EXPECT_FALSE(push_sum(2, 2, 1));
  expect_refused(1, "a gradient for step 1 came while the parameters are at step 0");
  expect_refused(2, "a gradient for step 1 came while the parameters are at step 0");
}

// By their addresses: one trainer is alone; those of host b are ranks 1 and 2.
class NoHostGroups : public HostGroupsOf {
 protected:
  NoHostGroups() : HostGroupsOf("abbc") {}
};

TEST_F(NoHostGroups, ASumOfATrainerWithoutNeighboursIsRefused) {
  begin(run());
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_FALSE(rank % 2 == 0 ? push_sum(rank, 2) : push_in_sum(rank));
    expect_refused(rank,
                   "a sum of gradients from a host that has one trainer, or whose trainers' ranks "
                   "are no subtree of a step's sum");
  }
}

TEST_F(NoHostGroups, ATrainerWithoutNeighboursIsNotAnnounced) {
  begin(run());
  EXPECT_EQ(ask_discovery(trainers_[1], 5, 6),
            (net::PeerDiscovery{.listener_name = 5, .token = 6}));
  EXPECT_EQ(ask_discovery(trainers_[2]), net::PeerDiscovery{});
}

// A host of four, and one of two at the end of the ranks.
class CutOffHosts : public HostGroupsOf {
 protected:
  CutOffHosts() : HostGroupsOf("aaaabb") {}
};

TEST_F(CutOffHosts, OneSumOfEachMakesTheStep) {
  begin(run());
  for (std::uint64_t step = 0; step < 2; ++step) {
    ASSERT_TRUE(push_sum(4, 2, step));
    for (const std::size_t rank : {5U, 3U, 2U, 1U}) {
      ASSERT_TRUE(push_in_sum(rank, step));
    }
    ASSERT_TRUE(push_sum(0, 4, step));
    for (std::size_t rank = 0; rank < 6; ++rank) {
      expect_answer(
          rank, step + 1,
          rank % 4 == 0 ? std::optional(-3.5F * static_cast<float>(step + 1)) : std::nullopt);
    }
  }
}

// ---- peer discovery on a host ----

TEST_F(TwoHosts, AMemberIsToldWhereItsLeaderIs) {
  begin(run());
  EXPECT_EQ(ask_discovery(trainers_[1]), net::PeerDiscovery{}) << "it has not said so";
  EXPECT_EQ(ask_discovery(trainers_[0], 5, 6),
            (net::PeerDiscovery{.listener_name = 5, .token = 6}));
  EXPECT_EQ(ask_discovery(trainers_[1]), (net::PeerDiscovery{.listener_name = 5, .token = 6}));
  EXPECT_EQ(ask_discovery(trainers_[3]), net::PeerDiscovery{}) << "that is another host's";
  EXPECT_EQ(ask_discovery(trainers_[2], 7, 8),
            (net::PeerDiscovery{.listener_name = 7, .token = 8}));
  EXPECT_EQ(ask_discovery(trainers_[3]), (net::PeerDiscovery{.listener_name = 7, .token = 8}));
  EXPECT_EQ(ask_discovery(trainers_[1]), (net::PeerDiscovery{.listener_name = 5, .token = 6}));
}

TEST_F(TwoHosts, ALeaderMayComeToBeElsewhere) {
  begin(run());
  static_cast<void>(ask_discovery(trainers_[0], 5, 6));
  static_cast<void>(ask_discovery(trainers_[0], 9, 10));
  EXPECT_EQ(ask_discovery(trainers_[1]), (net::PeerDiscovery{.listener_name = 9, .token = 10}));
  static_cast<void>(ask_discovery(trainers_[0]));
  EXPECT_EQ(ask_discovery(trainers_[1]), net::PeerDiscovery{}) << "nowhere";
}

TEST_F(TwoHosts, WhereAMemberConnectsIsNotAnnounced) {
  begin(run());
  EXPECT_EQ(ask_discovery(trainers_[1], 5, 6), net::PeerDiscovery{});
  EXPECT_EQ(ask_discovery(trainers_[0]), net::PeerDiscovery{});
  static_cast<void>(ask_discovery(trainers_[0], 7, 8));
  EXPECT_EQ(ask_discovery(trainers_[1], 5, 6),
            (net::PeerDiscovery{.listener_name = 7, .token = 8}));
  EXPECT_EQ(ask_discovery(trainers_[1]), (net::PeerDiscovery{.listener_name = 7, .token = 8}));
}

// Its memory was or will be lost with its process.
TEST_F(TwoHosts, ALeaderWhoseChannelHasClosedIsNowhere) {
  begin(run());
  static_cast<void>(ask_discovery(trainers_[0], 5, 6));
  ps_.hang_up(trainers_[0]);
  EXPECT_EQ(ask_discovery(trainers_[1]), net::PeerDiscovery{});
  trainers_[0] = ps_.connect(0, 70);
  EXPECT_EQ(ask_discovery(trainers_[1]), net::PeerDiscovery{})
      << "it has not said so over this one";
  static_cast<void>(ask_discovery(trainers_[0], 9, 10));
  EXPECT_EQ(ask_discovery(trainers_[1]), (net::PeerDiscovery{.listener_name = 9, .token = 10}));
}

// The newer channel has replaced it, whether the older one has closed or not.
TEST_F(TwoHosts, WhatALeaderSaysOverAnOlderChannelChangesNothing) {
  begin(run());
  const ConnectionId older = trainers_[0];
  static_cast<void>(ask_discovery(older, 5, 6));
  trainers_[0] = ps_.connect(0, 7);
  EXPECT_EQ(ask_discovery(trainers_[1]), net::PeerDiscovery{});
  static_cast<void>(ask_discovery(trainers_[0], 9, 10));
  static_cast<void>(ask_discovery(older, 5, 6));
  EXPECT_EQ(ask_discovery(trainers_[1]), (net::PeerDiscovery{.listener_name = 9, .token = 10}));
}

TEST_F(TwoHosts, MeetingNeedsNoRun) {
  trainers_[0] = ps_.connect(0, 7);
  trainers_[1] = ps_.connect(1, 8);
  static_cast<void>(ask_discovery(trainers_[0], 5, 6));
  EXPECT_EQ(ask_discovery(trainers_[1]), (net::PeerDiscovery{.listener_name = 5, .token = 6}));
}

TEST_F(TwoHosts, AQuestionWithAFieldThatItHasNotIsRefused) {
  begin(run());
  FrameHeader header = net::PeerDiscovery{.request_id = 4}.to_header();
  header.range_begin = 1;
  EXPECT_FALSE(ps_.say(trainers_[1], header));
  expect_refused(1, "reserved bytes of the frame header are not zero");
  EXPECT_FALSE(ps_.say(trainers_[2], net::PeerDiscovery{.request_id = 4}.to_header(), Bytes(8)));
  expect_refused(2, "this kind of frame has no body here");
}

}  // namespace
}  // namespace disttf::roles
