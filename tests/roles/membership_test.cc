#include "roles/ps/core/membership.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "net/wire/replication.h"
#include "roles/ps/core/connection_map.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kStep = net::ChannelPurpose::kStep;
constexpr auto kControl = net::ChannelPurpose::kControl;

Task make_task() {
  Task task;
  task.cluster.ps = {{.host = "ps0", .port = 1}};
  task.cluster.chief = {{.host = "boss", .port = 2}};
  task.cluster.workers = {{.host = "w0", .port = 3}, {.host = "w1", .port = 4}};
  task.self = {.job = net::Job::kPs, .index = 0};
  task.timeouts = {.start = seconds(300),
                   .peer = seconds(60),
                   .worker = seconds(20),
                   .heartbeat_timeout = seconds(10)};
  return task;
}

// The chief is rank 0, the workers are ranks 1 and 2. Time is virtual: seconds since the ps began
// to wait.
class MembershipTest : public testing::Test {
 protected:
  static Clock::time_point at(int second) { return kStart + seconds(second); }

  // A trainer's process opens a connection. Returns true if that makes the trainer present.
  bool connect(std::size_t rank, net::ChannelPurpose purpose, std::uint64_t process, int second) {
    return table_.attach(rank, ++last_, hello_of(rank, process, purpose), at(second), out_);
  }
  ConnectionId attach(std::size_t rank, net::ChannelPurpose purpose, std::uint64_t process,
                      int second) {
    connect(rank, purpose, process, second);
    return last_;
  }
  // Returns true unless the closing of the connection was requested.
  [[nodiscard]] bool is_open(ConnectionId id) const {
    return std::ranges::none_of(out_.effects(), [id](const Outbox::Effect& effect) {
      const auto* close = std::get_if<CloseConnection>(&effect);
      return close != nullptr && close->id == id;
    });
  }
  [[nodiscard]] std::optional<OverdueTrainer> overdue(int second) const {
    return table_.overdue(at(second));
  }
  [[nodiscard]] net::Hello hello_of(std::size_t rank, std::uint64_t process,
                                    net::ChannelPurpose purpose = kStep) const {
    return {.cluster = {},
            .from = task_.cluster.trainer(rank),
            .to = task_.self,
            .purpose = purpose,
            .incarnation = process};
  }

  static constexpr Clock::time_point kStart{std::chrono::hours(1)};
  const Task task_ = make_task();
  Membership table_{task_, kStart};
  Outbox out_;
  ConnectionId last_ = 0;
};

TEST_F(MembershipTest, TimeThatWasMissedDoesNotCountAsADisconnection) {
  const ConnectionId step = attach(1, kStep, 7, 0);
  table_.detach(1, step, at(5));
  table_.forgive(at(100), seconds(80));  // disconnected since 85 now, of 20 s
  EXPECT_FALSE(overdue(104));
  EXPECT_TRUE(overdue(106));
}

TEST_F(MembershipTest, TimeThatWasMissedDoesNotCountTowardTheHeartbeatTimeout) {
  const ConnectionId step = attach(1, kStep, 7, 0);
  table_.forgive(at(100), seconds(95));
  table_.close_timed_out(at(100), out_);
  EXPECT_TRUE(is_open(step));
  table_.close_timed_out(at(106), out_);
  EXPECT_FALSE(is_open(step));
}

// Another state may arrive before the connection is reported closed; no request waits for one of
// it.
TEST_F(MembershipTest, NoTrainerWaitsOverAChannelThatWasClosedHere) {
  const ConnectionId step = attach(1, kStep, 7, 0);
  const ConnectionId control = attach(1, kControl, 7, 0);
  table_[1].waiting = WaitingRequest{.connection = step, .request = net::PushPull{}};
  table_.close_steps(out_);
  EXPECT_FALSE(is_open(step));
  EXPECT_TRUE(is_open(control));
  EXPECT_FALSE(table_[1].waiting);
}

TEST_F(MembershipTest, LacksWhoWasHereAndHasBeenAwayForLong) {
  const ConnectionId step = attach(1, kStep, 7, 0);
  EXPECT_EQ(table_.unreachable_trainers(at(100), seconds(3)), 0U);
  table_.detach(1, step, at(100));
  EXPECT_EQ(table_.unreachable_trainers(at(102), seconds(3)), 0U);
  EXPECT_EQ(table_.unreachable_trainers(at(104), seconds(3)), net::in_set(1));
  table_[1].done = true;
  EXPECT_EQ(table_.unreachable_trainers(at(104), seconds(3)), 0U);
}

TEST_F(MembershipTest, ARepeatedlyRedirectedClientIsReported) {
  table_.redirected(2, at(10));
  EXPECT_EQ(table_.redirected_clients(at(12)), 0U);
  table_.redirected(2, at(12));
  EXPECT_EQ(table_.redirected_clients(at(13)), net::in_set(2));
  EXPECT_EQ(table_.redirected_clients(at(60)), 0U);
  table_.redirected(2, at(60));
  EXPECT_EQ(table_.redirected_clients(at(61)), 0U);
}

// ---- attach and detach ----

TEST_F(MembershipTest, CountsWhoCanBeSentParameters) {
  EXPECT_EQ(table_.present(), 0U);
  const ConnectionId chief = attach(0, kStep, 7, 0);
  attach(1, kControl, 8, 0);
  EXPECT_EQ(table_.present(), 1U);
  const ConnectionId worker = attach(1, kStep, 8, 1);
  EXPECT_EQ(table_.present(), 2U);
  attach(1, kStep, 8, 2);  // replaces the connection before
  table_.detach(1, worker, at(2));
  EXPECT_EQ(table_.present(), 2U);
  attach(1, kControl, 9, 3);  // of its next process
  EXPECT_EQ(table_.present(), 1U);
  table_.detach(0, chief, at(4));
  EXPECT_EQ(table_.present(), 0U);
}

TEST_F(MembershipTest, AStepChannelMakesATrainerPresent) {
  EXPECT_FALSE(table_[1].present());
  EXPECT_TRUE(connect(1, kStep, 7, 1));
  EXPECT_TRUE(table_[1].present());
  EXPECT_TRUE(table_[1].joined);
}

TEST_F(MembershipTest, AControlChannelAloneDoesNotMakeItPresent) {
  EXPECT_FALSE(connect(1, kControl, 7, 1));
  EXPECT_FALSE(table_[1].present());
  EXPECT_TRUE(table_[1].alive());
}

TEST_F(MembershipTest, AttachingIsHearing) {
  attach(1, kControl, 7, 5);
  EXPECT_EQ(table_[1].last_received, at(5));
}

TEST_F(MembershipTest, ASecondStepChannelOfTheSameProcessReplacesTheFirst) {
  const ConnectionId first = attach(1, kStep, 7, 1);
  const ConnectionId control = attach(1, kControl, 7, 1);
  EXPECT_FALSE(connect(1, kStep, 7, 2)) << "it was present already";
  const ConnectionId second = last_;
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(control));
  EXPECT_EQ(table_[1].step, second);
}

TEST_F(MembershipTest, TheEndOfAReplacedConnectionChangesNothing) {
  const ConnectionId first = attach(1, kStep, 7, 1);
  const ConnectionId second = attach(1, kStep, 7, 2);
  EXPECT_FALSE(table_.detach(1, first, at(3)));
  EXPECT_EQ(table_[1].step, second);
}

TEST_F(MembershipTest, TheEndOfTheStepChannelMakesItDisconnected) {
  const ConnectionId step = attach(1, kStep, 7, 1);
  EXPECT_TRUE(table_.detach(1, step, at(2)));
  EXPECT_FALSE(table_[1].present());
}

TEST_F(MembershipTest, ARequestIsForgottenWithItsConnection) {
  const ConnectionId step = attach(1, kStep, 7, 1);
  table_[1].waiting = WaitingRequest{.connection = step, .request = {}};
  table_.detach(1, step, at(2));
  EXPECT_FALSE(table_[1].waiting.has_value());
}

TEST_F(MembershipTest, ARequestIsForgottenWhenANewStepChannelComes) {
  const ConnectionId step = attach(1, kStep, 7, 1);
  table_[1].waiting = WaitingRequest{.connection = step, .request = {}};
  attach(1, kControl, 7, 2);
  EXPECT_TRUE(table_[1].waiting.has_value());
  attach(1, kStep, 7, 2);
  EXPECT_FALSE(table_[1].waiting.has_value());
}

TEST_F(MembershipTest, TheEndOfTheControlChannelLeavesItPresent) {
  attach(1, kStep, 7, 1);
  const ConnectionId control = attach(1, kControl, 7, 1);
  EXPECT_FALSE(table_.detach(1, control, at(2)));
  EXPECT_TRUE(table_[1].present());
}

// ---- A newer process takes over ----

TEST_F(MembershipTest, ANewProcessClosesAllThatTheOldOneHad) {
  const ConnectionId step = attach(1, kStep, 7, 1);
  const ConnectionId control = attach(1, kControl, 7, 1);
  attach(1, kControl, 8, 2);
  EXPECT_FALSE(is_open(step));
  EXPECT_FALSE(is_open(control));
  EXPECT_FALSE(table_[1].present());
  EXPECT_EQ(table_[1].incarnation, 8U);
}

TEST_F(MembershipTest, WhoIsDoneStaysSoWhenItConnectsAgainButNotAsANewProcess) {
  attach(1, kStep, 7, 1);
  table_[1].done = true;
  attach(1, kStep, 7, 2);
  EXPECT_TRUE(table_[1].done);
  attach(1, kStep, 8, 3);
  EXPECT_FALSE(table_[1].done);
}

// ---- Heartbeat timeout ----

TEST_F(MembershipTest, ATimedOutTrainersConnectionsAreClosed) {
  const ConnectionId step = attach(1, kStep, 7, 0);
  const ConnectionId control = attach(1, kControl, 7, 0);
  table_.close_timed_out(at(10) - milliseconds(1), out_);
  EXPECT_TRUE(is_open(step));
  table_.close_timed_out(at(10), out_);
  EXPECT_FALSE(is_open(step));
  EXPECT_FALSE(is_open(control));
}

TEST_F(MembershipTest, ATrainerThatIsHeardKeepsItsConnections) {
  const ConnectionId step = attach(1, kStep, 7, 0);
  table_[1].last_received = at(9);
  table_.close_timed_out(at(18), out_);
  EXPECT_TRUE(is_open(step));
}

// ---- Disconnected trainers ----

TEST_F(MembershipTest, NoTrainerIsOverdueBeforeTheStartTimeout) {
  EXPECT_FALSE(overdue(300));
  const auto late = overdue(301);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->rank, 0U);
  EXPECT_FALSE(late->joined);
  EXPECT_EQ(late->limit, seconds(300));
}

TEST_F(MembershipTest, ALostWorkerIsOverdueAfterItsTimeout) {
  const ConnectionId step = attach(1, kStep, 7, 100);
  table_.detach(1, step, at(110));
  EXPECT_FALSE(overdue(130));
  const auto late = overdue(131);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->rank, 1U);
  EXPECT_TRUE(late->joined);
  EXPECT_EQ(late->limit, seconds(20));
}

TEST_F(MembershipTest, ALostChiefIsOverdueAfterThePeerTimeout) {
  const ConnectionId step = attach(0, kStep, 7, 100);
  table_.detach(0, step, at(110));
  EXPECT_FALSE(overdue(170));
  const auto late = overdue(171);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->limit, seconds(60));
}

TEST_F(MembershipTest, OneThatIsNotNeededIsNeverOverdue) {
  attach(0, kStep, 6, 0);
  const ConnectionId step = attach(1, kStep, 7, 0);
  table_.detach(1, step, at(1));
  table_.need(1, at(1));
  EXPECT_FALSE(overdue(200));
}

TEST_F(MembershipTest, TooFewAreMissedFromWhenTheyWere) {
  attach(0, kStep, 6, 0);
  const ConnectionId first = attach(1, kStep, 7, 0);
  const ConnectionId second = attach(2, kStep, 8, 0);
  table_.need(2, at(0));
  table_.detach(1, first, at(1));  // permanently
  table_.need(2, at(1));
  EXPECT_FALSE(overdue(200));
  table_.detach(2, second, at(200));
  table_.need(2, at(200));
  EXPECT_FALSE(overdue(220));
  EXPECT_TRUE(overdue(221));
}

TEST_F(MembershipTest, OnlyTheChiefIsMissedOnceNoTrainerIsNeeded) {
  const ConnectionId chief = attach(0, kStep, 6, 0);
  table_.need(0, at(0));
  EXPECT_FALSE(overdue(1000));
  table_.detach(0, chief, at(1000));
  EXPECT_TRUE(overdue(1061));
}

TEST_F(MembershipTest, OneThatIsDoneIsNeverOverdue) {
  const ConnectionId step = attach(1, kStep, 7, 0);
  table_[1].done = true;
  table_.detach(1, step, at(1));
  EXPECT_FALSE(overdue(200));
}

// The chief has its result, but has not yet ended the run. If it dies first, a ps would wait for
// ever.
TEST_F(MembershipTest, AChiefThatIsDoneIsMissedAllTheSame) {
  const ConnectionId step = attach(0, kStep, 7, 0);
  table_[0].done = true;
  table_.detach(0, step, at(1));
  EXPECT_TRUE(overdue(200));
}

// Heartbeats begin while the data set is still being downloaded.
TEST_F(MembershipTest, ATrainerThatOnlySendsHeartbeatsYetIsNotOverdue) {
  attach(1, kControl, 7, 100);
  EXPECT_FALSE(overdue(299));
}

TEST_F(MembershipTest, DisconnectionBeginsWhenTheLastConnectionEnds) {
  const ConnectionId step = attach(1, kStep, 7, 0);
  const ConnectionId control = attach(1, kControl, 7, 0);
  table_.detach(1, step, at(100));
  EXPECT_FALSE(overdue(150)) << "its process lives: it is connecting again";
  table_.detach(1, control, at(150));
  EXPECT_FALSE(overdue(170));
  EXPECT_TRUE(overdue(171));
}

TEST_F(MembershipTest, AReplacedTrainerIsNotOverdueForTheTimeItWasThere) {
  attach(1, kStep, 7, 0);
  const ConnectionId control = attach(1, kControl, 8, 100);
  table_.detach(1, control, at(110));
  EXPECT_FALSE(overdue(130));
  EXPECT_TRUE(overdue(131));
}

// ---- Missing trainers ----

TEST_F(MembershipTest, NamesThoseThatWereNeverSeen) {
  attach(1, kStep, 7, 0);
  EXPECT_EQ(table_.never_seen(), "chief 0 (boss:2), worker 1 (w1:4)");
}

// The chief has waited since second 0. A disconnected trainer has 2 s, a connected one 20 s.
Membership::Patience patience(bool expects_all = true) {
  return {.since = Clock::time_point{std::chrono::hours(1)},
          .disconnected = seconds(2),
          .present = seconds(20),
          .expects_all = expects_all};
}

TEST_F(MembershipTest, OthersAreDoneOnceTheyHaveSaidSo) {
  attach(0, kStep, 7, 0);
  attach(1, kStep, 7, 0);
  attach(2, kStep, 7, 0);
  table_[1].done = true;
  EXPECT_FALSE(table_.others_are_done(at(19), patience())) << "one computes still";
  table_[2].done = true;
  EXPECT_TRUE(table_.others_are_done(at(1), patience()));
  table_.none_is_done();
  EXPECT_FALSE(table_.others_are_done(at(1), patience()));
}

TEST_F(MembershipTest, OneThatComputesIsWaitedForButNotForEver) {
  attach(1, kStep, 7, 0);
  attach(2, kControl, 7, 0);
  table_[1].done = true;
  EXPECT_FALSE(table_.others_are_done(at(19), patience())) << "its process lives";
  EXPECT_TRUE(table_.others_are_done(at(20), patience()));
}

TEST_F(MembershipTest, OneThatWasNeverSeenMayStillComeForAMoment) {
  attach(1, kStep, 7, 0);
  table_[1].done = true;
  EXPECT_FALSE(table_.others_are_done(at(1), patience()));
  EXPECT_TRUE(table_.others_are_done(at(2), patience()));
  EXPECT_TRUE(table_.others_are_done(at(0), patience(/*expects_all=*/false)));
}

TEST_F(MembershipTest, AnOptionalTrainerIsNotExpected) {
  Task task = make_task();
  net::open_to(task.cluster, 3);
  Membership table(task, kStart);
  table.attach(0, 1, hello_of(0, 7), at(0), out_);
  table[1].done = true;
  table[2].done = true;
  EXPECT_TRUE(table.others_are_done(at(0), patience()));
  table.attach(3, 2, hello_of(1, 8), at(0), out_);
  EXPECT_FALSE(table.others_are_done(at(0), patience())) << "it has joined";
}

TEST_F(MembershipTest, WhoHasJustLostItsConnectionMayComeBack) {
  attach(0, kStep, 7, 0);
  const ConnectionId other = attach(2, kStep, 7, 0);
  table_[1].done = true;
  table_.detach(2, other, at(1));
  EXPECT_FALSE(table_.others_are_done(at(2), patience()));
  EXPECT_TRUE(table_.others_are_done(at(3), patience()));
}

TEST_F(MembershipTest, OthersHaveLeftWhenNoneHasAConnection) {
  attach(0, kStep, 7, 0);
  EXPECT_TRUE(table_.others_have_left());
  const ConnectionId control = attach(1, kControl, 7, 0);
  EXPECT_FALSE(table_.others_have_left());
  table_.detach(1, control, at(1));
  EXPECT_TRUE(table_.others_have_left());
}

// The state that a ps keeps for each of its connections.

using ::testing::ElementsAre;

class ConnectionMapTest : public testing::Test {
 protected:
  ConnectionMapTest() {
    for (const ConnectionId id : {3U, 7U, 5U}) {
      connections_.emplace(id, std::to_string(id));
    }
  }
  [[nodiscard]] std::vector<ConnectionId> ids() const {
    std::vector<ConnectionId> all;
    for (auto&& [id, name] : connections_) {
      all.push_back(id);
    }
    return all;
  }

  ConnectionMap<std::string> connections_;
};

TEST_F(ConnectionMapTest, FindsWhatItHasAndNothingElse) {
  EXPECT_EQ(connections_.at(5), "5");
  EXPECT_EQ(connections_.find(7)->second, "7");
  EXPECT_TRUE(connections_.find(4) == connections_.end());
  EXPECT_TRUE(connections_.find(8) == connections_.end());
  EXPECT_THROW(static_cast<void>(connections_.at(4)), std::out_of_range);
}

TEST_F(ConnectionMapTest, GoesOverThemInTheOrderOfTheirIds) {
  EXPECT_THAT(ids(), ElementsAre(3, 5, 7));
}

TEST_F(ConnectionMapTest, AnotherOneOfTheSameIdIsNotTaken) {
  connections_.emplace(5, "again");
  EXPECT_EQ(connections_.at(5), "5");
}

// References to a value stay valid while other connections come and go.
TEST_F(ConnectionMapTest, AValueStaysWhereItIs) {
  const std::string* const seven = &connections_.at(7);
  EXPECT_EQ(connections_.erase(3), 1U);
  EXPECT_EQ(connections_.erase(3), 0U);
  connections_[4] = "4";
  EXPECT_EQ(seven, &connections_.at(7));
  EXPECT_THAT(ids(), ElementsAre(4, 5, 7));
}

}  // namespace
}  // namespace disttf::roles
