// Trainers of a host that leave gradients and parameters in memory for each other.
#include "net/memory/host_group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/net/host_group_fixture.h"

namespace disttf::net::group_test {
namespace {

using namespace std::chrono_literals;

// -------------------------------------------------------------------------------------- exchanges

class HostGroupExchange : public HostGroupTest, public testing::WithParamInterface<std::size_t> {
 protected:
  static constexpr std::uint64_t kSteps = 20;
  static constexpr std::size_t kCut = 333;  // the second range begins here
  static StateOf state(std::uint64_t step) { return {.generation = 1, .step = step}; }
  static std::uint64_t seed(std::size_t member, std::uint64_t step) { return step * 10 + member; }

  void follow(GroupMember& member, std::size_t number) const {
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      const auto verdict =
          member.offer(state(step), vector_of(seed(number, step)), interrupt_, later());
      ASSERT_EQ(verdict, (GroupVerdict{.of = state(step), .summed = step}));
      Bytes parameters(kVector);
      const std::span<std::byte> all(parameters);
      ASSERT_TRUE(member.take({.range = 1, .of = state(step)}, kCut, all.subspan(kCut), interrupt_,
                              later()));
      ASSERT_TRUE(
          member.take({.range = 0, .of = state(step)}, 0, all.first(kCut), interrupt_, later()));
      ASSERT_EQ(parameters, vector_of(~step));
    }
  }
  void lead() {
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      ASSERT_TRUE(gathers(state(step), later()));
      for (std::size_t i = 0; i < GetParam(); ++i) {
        ASSERT_TRUE(is_equal(leader_->gradient(i), vector_of(seed(i, step)))) << i;
      }
      ASSERT_TRUE(leader_->stands());
      leader_->tell({.of = state(step), .summed = step});
      const Bytes parameters = vector_of(~step);
      const std::span<const std::byte> all(parameters);
      leader_->publish({.range = 0, .of = state(step)}, 0, all.first(kCut));
      leader_->publish({.range = 1, .of = state(step)}, kCut, all.subspan(kCut));
    }
  }
};

TEST_P(HostGroupExchange, EachGetsWhatTheOtherHasLeft) {
  open(GetParam());
  std::vector<std::unique_ptr<GroupMember>> members;
  for (std::size_t i = 0; i < GetParam(); ++i) {
    members.push_back(join_leader(i));
  }
  ASSERT_FALSE(gathers(kFirst));
  ASSERT_EQ(leader_->present(), GetParam());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < GetParam(); ++i) {
    ASSERT_TRUE(members[i]->is_taken_in());
    threads.emplace_back([this, i, &members] {
      follow(*members[i], i);
      members[i]->close();  // the leader does not wait for a failed member
    });
  }
  lead();
  leader_.reset();
  for (std::thread& thread : threads) {
    thread.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Members, HostGroupExchange, testing::Values(1U, 7U),
                         testing::PrintToStringParamName());

TEST_F(HostGroupTest, WhoComesDuringAGatherCountsFromTheNextOneOn) {
  open(2);
  const auto first = join_leader(0);
  EXPECT_FALSE(first->is_taken_in()) << "the leader has not looked yet";
  EXPECT_TRUE(first->is_open());
  EXPECT_FALSE(gathers(kFirst, later())) << "the other one is missing";
  EXPECT_EQ(leader_->present(), 1U);
  EXPECT_TRUE(first->is_taken_in());
  const RawMember second = raw();
  ASSERT_TRUE(sends(second.peer, {.says = kSaysHello, .number = 1}));
  ASSERT_TRUE(sends(second.peer, {.says = kSaysOffer, .of = kFirst}));
  leader_->tell({.of = kFirst});
  EXPECT_TRUE(offers(*first, kFirst));
  EXPECT_FALSE(gathers(kSecond, later()));
  EXPECT_EQ(leader_->present(), 2U);
}

TEST_F(HostGroupTest, AVerdictToldBeforeTheOfferIsNotWaitedFor) {
  const auto member = open_with_a_member();
  leader_->tell({.of = kFirst, .summed = 5});
  EXPECT_EQ(offers(*member, kFirst), (GroupVerdict{.of = kFirst, .summed = 5}));
  EXPECT_TRUE(member->is_open());
  leader_->tell({.of = kSecond, .summed = 6});
  EXPECT_EQ(offers(*member, kSecond), (GroupVerdict{.of = kSecond, .summed = 6}));
  EXPECT_FALSE(gathers(kSecond)) << "there was no offer";
  EXPECT_EQ(leader_->present(), 1U);
}

TEST_F(HostGroupTest, AVerdictOnAnOlderStateIsNone) {
  const auto member = open_with_a_member();
  leader_->tell({.of = kFirst, .summed = 5});
  EXPECT_FALSE(offers(*member, kSecond));
  EXPECT_FALSE(member->is_open());
}

TEST_F(HostGroupTest, AfterAVerdictOnANewerStateThereIsNoSumOfThisOne) {
  const auto member = open_with_a_member();
  leader_->tell({.of = kReset, .summed = 5});
  EXPECT_EQ(offers(*member, kSecond), (GroupVerdict{.of = kSecond, .summed = 0}));
  EXPECT_EQ(offers(*member, kReset), (GroupVerdict{.of = kReset, .summed = 5}));
}

TEST_F(HostGroupTest, AnOfferThatIsAnsweredAlreadyIsNotOfAnotherState) {
  open(1);
  const RawMember member = raw_member();
  leader_->tell({.of = kFirst});
  ASSERT_TRUE(sends(member.peer, {.says = kSaysOffer, .of = kFirst, .sequence = 2}));
  std::thread late([&member] {
    while (!has_been_read(member.peer)) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(sends(member.peer, {.says = kSaysOffer, .of = kReset, .sequence = 4}));
  });
  EXPECT_TRUE(gathers(kReset, later()));
  late.join();
}

TEST_F(HostGroupTest, WhoWaitsForAnotherVerdictIsNotWaitedFor) {
  open(1);
  const RawMember member = raw_member();
  ASSERT_TRUE(sends(member.peer, {.says = kSaysOffer, .of = kSecond}));
  EXPECT_FALSE(gathers(kFirst, later()));
  EXPECT_FALSE(gathers(kReset, later()));
  EXPECT_TRUE(gathers(kSecond, later()));
  EXPECT_EQ(leader_->present(), 1U);
}

TEST_F(HostGroupTest, ParametersAreTakenInAnyOrder) {
  const auto member = open_with_a_member();
  publish(1, kFirst);
  std::vector<std::byte> other(kVector / 2);
  leader_->publish({.range = kMostSummedRanges, .of = kFirst}, 0,
                   other);  // no member gets a message about it
  publish(0, kFirst);
  EXPECT_TRUE(takes(*member, 0, kFirst));
  publish(kMostSummedRanges - 1, kSecond);
  EXPECT_TRUE(takes(*member, kMostSummedRanges - 1, kSecond));
}

// ------------------------------------------------------------------------------------- departures

TEST_F(HostGroupTest, AMemberThatGoesIsNotWaitedFor) {
  auto member = open_with_a_member();
  std::thread leaves([&member] { member.reset(); });
  EXPECT_FALSE(gathers(kFirst, later()));
  leaves.join();
  EXPECT_EQ(leader_->present(), 0U);
}

TEST_F(HostGroupTest, AMemberThatGoesOnceItHasOfferedHasGone) {
  const auto member = open_with_a_member();
  EXPECT_FALSE(offers(*member, kFirst)) << "the deadline has passed";
  EXPECT_FALSE(member->is_open());
  EXPECT_EQ(member->fd(), -1);
  EXPECT_FALSE(member->is_taken_in());
  EXPECT_FALSE(gathers(kFirst, later()));
  EXPECT_EQ(leader_->present(), 0U);
}

TEST_F(HostGroupTest, ALeaderThatGoesIsNotWaitedFor) {
  const auto offering = open_with_a_member();
  std::thread leaves([this] { leader_.reset(); });
  EXPECT_FALSE(offers(*offering, kFirst, later()));
  EXPECT_FALSE(offering->is_open());
  leaves.join();
  const auto taking = open_with_a_member();
  publish(1, kFirst);
  std::thread leaves_too([this] { leader_.reset(); });
  EXPECT_FALSE(takes(*taking, 0, kFirst, later()));
  EXPECT_FALSE(taking->is_open());
  leaves_too.join();
  EXPECT_FALSE(taking->look());
}

TEST_F(HostGroupTest, WhatALeaderHasSaidBeforeItWentCounts) {
  const auto member = open_with_a_member();
  leader_->tell({.of = kFirst, .summed = 1});
  publish(0, kFirst);
  leader_.reset();
  EXPECT_EQ(offers(*member, kFirst), (GroupVerdict{.of = kFirst, .summed = 1}));
  EXPECT_TRUE(takes(*member, 0, kFirst));
  EXPECT_FALSE(member->is_open());
  EXPECT_FALSE(offers(*member, kSecond, later()));
  EXPECT_FALSE(takes(*member, 0, kFirst)) << "it has left";
}

TEST_F(HostGroupTest, NoWaitPassesTheDeadline) {
  const auto member = open_with_a_member();
  EXPECT_FALSE(gathers(kFirst, Clock::now() + 1ms));
  EXPECT_EQ(leader_->present(), 1U);
  EXPECT_FALSE(takes(*member, 0, kFirst, Clock::now() + 1ms));
  EXPECT_FALSE(member->is_open());
  const auto other = open_with_a_member();
  EXPECT_FALSE(offers(*other, kFirst, Clock::now() + 1ms));
  EXPECT_FALSE(other->is_open());
}

TEST_F(HostGroupTest, TheInterruptEndsEachWait) {
  const auto offering = open_with_a_member();
  const std::unique_ptr<GroupLeader> of_that = std::move(leader_);
  const auto taking = open_with_a_member();
  interrupt_.interrupt();
  EXPECT_FALSE(gathers(kFirst, later()));
  EXPECT_EQ(leader_->present(), 1U);
  EXPECT_FALSE(offers(*offering, kFirst, later()));
  EXPECT_FALSE(offering->is_open());
  EXPECT_FALSE(takes(*taking, 0, kFirst, later()));
  EXPECT_FALSE(taking->is_open());
}

TEST_F(HostGroupTest, WhoDoesNotReadHasGone) {
  const auto member = open_with_a_member();
  for (std::size_t i = 0; i < 2 * kMostSummedRanges; ++i) {
    publish(i % kMostSummedRanges, kFirst);
  }
  EXPECT_EQ(leader_->present(), 1U) << "the socket has room for the messages of a step";
  for (int i = 0; i < 100'000 && leader_->present() != 0; ++i) {
    leader_->tell({.of = kFirst});
  }
  EXPECT_EQ(leader_->present(), 0U);
  while (member->look()) {  // some at a time
  }
  EXPECT_EQ(offers(*member, kFirst), GroupVerdict{.of = kFirst});
}

// ------------------------------------------------------------------------------- changed memory

TEST_F(HostGroupTest, AGradientThatIsWrittenToDoesNotStand) {
  open(2);
  const RawMember first = raw_member(0);
  const RawMember second = raw_member(1);
  for (const RawMember* member : {&first, &second}) {
    member->set_ticket(2);
    ASSERT_TRUE(sends(member->peer, {.says = kSaysOffer, .of = kFirst, .sequence = 2}));
  }
  ASSERT_TRUE(gathers(kFirst));
  EXPECT_TRUE(leader_->stands());
  second.set_ticket(3);
  EXPECT_FALSE(leader_->stands());
  second.set_ticket(4);
  EXPECT_FALSE(leader_->stands());
  second.set_ticket(2);
  EXPECT_TRUE(leader_->stands());
}

TEST_F(HostGroupTest, AGradientStandsThoughItsMemberGoes) {
  open(1);
  {
    const RawMember member = raw_member();
    member.set_ticket(2);
    std::ranges::copy(vector_of(9), member.memory->bytes().begin());
    ASSERT_TRUE(sends(member.peer, {.says = kSaysOffer, .of = kFirst, .sequence = 2}));
    ASSERT_TRUE(gathers(kFirst));
  }
  leader_->tell({.of = kFirst});
  EXPECT_EQ(leader_->present(), 0U);
  EXPECT_TRUE(is_equal(leader_->gradient(0), vector_of(9)));
  EXPECT_TRUE(leader_->stands());
  EXPECT_FALSE(gathers(kFirst));
  EXPECT_FALSE(leader_->stands());
}

TEST_F(HostGroupTest, ParametersThatOthersHaveTakenThePlaceOfAreNotTaken) {
  const auto unread = open_with_a_member();
  publish(0, kFirst);
  publish(0, kSecond);
  EXPECT_FALSE(takes(*unread, 0, kFirst, later()));
  EXPECT_FALSE(unread->is_open());
  const auto read = open_with_a_member();
  publish(0, kFirst);
  ASSERT_TRUE(read->look());
  publish(0, kFirst);
  EXPECT_FALSE(takes(*read, 0, kFirst)) << "these were announced anew";
  EXPECT_FALSE(read->is_open());
}

TEST_F(HostGroupTest, ParametersOfAnotherRangeTakeNoPlace) {
  const auto member = open_with_a_member();
  leader_->publish({.range = 0, .of = kFirst}, 0, vector_of(1, kVector / 2));
  ASSERT_TRUE(member->look());
  leader_->publish({.range = 1, .of = kSecond}, kVector / 2, vector_of(2, kVector / 2));
  Bytes into(kVector / 2);
  EXPECT_TRUE(member->take({.range = 0, .of = kFirst}, 0, into, interrupt_, kNow));
  EXPECT_EQ(into, vector_of(1, kVector / 2));
}

// A member that waits for a ps learns from this that its leader runs.
TEST_F(HostGroupTest, AMemberHearsThatItsLeaderRuns) {
  const auto member = open_with_a_member();
  static_cast<void>(member->has_received());
  EXPECT_TRUE(member->look());
  EXPECT_FALSE(member->has_received());
  leader_->beat();
  EXPECT_TRUE(member->look());
  EXPECT_TRUE(member->has_received());
  EXPECT_FALSE(member->has_received()) << "it is reported once";
}

// With averages the result differs from the parameters of that step.
TEST_F(HostGroupTest, TheResultIsNotTakenForTheParametersOfItsStepNorTheseForIt) {
  const auto member = open_with_a_member();
  Bytes into(kVector);
  publish(0, kFirst);
  EXPECT_FALSE(
      member->take({.range = 0, .of = kFirst, .is_result = true}, 0, into, interrupt_, later()));
  EXPECT_FALSE(member->is_open());
  const auto other = join_leader();
  EXPECT_FALSE(gathers(kFirst));
  ASSERT_TRUE(other->is_taken_in());
  leader_->publish({.range = 0, .of = kFirst, .is_result = true}, 0, vector_of(9));
  ASSERT_TRUE(other->look());
  EXPECT_TRUE(other->has_newer(0, {.generation = 0, .step = 0}));
  EXPECT_FALSE(other->has_newer(0, kFirst));
  EXPECT_TRUE(
      other->take({.range = 0, .of = kFirst, .is_result = true}, 0, into, interrupt_, kNow));
  EXPECT_TRUE(is_equal(into, vector_of(9)));
}

}  // namespace
}  // namespace disttf::net::group_test
