// The chief's snapshots of all ps, in virtual time.
#include "roles/chief/core/snapshot_coordinator.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>

namespace disttf::roles {
namespace {

using net::ReplicaRole;
using net::ShardState;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr HostContact kOwnPs{.kind = HostContact::Kind::kWelcomed,
                             .replica_role = ReplicaRole::kOnly,
                             .state = ShardState::kReady};
constexpr HostContact kNewPs{.kind = HostContact::Kind::kWelcomed,
                             .replica_role = ReplicaRole::kOnly,
                             .state = ShardState::kEmpty};
constexpr HostContact kPrimaryHost{.kind = HostContact::Kind::kWelcomed,
                                   .replica_role = ReplicaRole::kPrimary,
                                   .state = ShardState::kReady};
constexpr HostContact kBackupHost{.kind = HostContact::Kind::kWelcomed,
                                  .replica_role = ReplicaRole::kBackup,
                                  .state = ShardState::kReady};
constexpr HostContact kNobody{.kind = HostContact::Kind::kTurnedAway};
constexpr HostContact kSilent{.kind = HostContact::Kind::kUnreachable};

class SnapshotCoordinatorTest : public testing::Test {
 protected:
  using TimePoint = SnapshotRequest::TimePoint;

  static SnapshotCoordinator two_ps(bool sharded, bool replicated = false, bool same_step = true) {
    return {{.ps = {"ps 0 (a:1)", "ps 1 (b:1)"},
             .replicated = replicated,
             .sharded = sharded,
             .same_step = same_step},
            7};
  }
  template <typename Kind>
  static Kind expect(const SnapshotAction& action) {
    const auto* const found = std::get_if<Kind>(&action);
    EXPECT_NE(found, nullptr) << "it wants something else: " << action.index();
    return found != nullptr ? *found : Kind{};
  }
  // Both ps are reached and have the snapshot, of these steps. Returns the next effect.
  SnapshotAction find_both(SnapshotCoordinator& core, const SnapshotRequest& request,
                           std::uint64_t first = 40, std::uint64_t second = 40) const {
    EXPECT_EQ(expect<ConnectToHost>(core.begin(request)).ps, 0U);
    EXPECT_EQ(expect<FindSnapshot>(core.connected(kOwnPs, now_)).ps, 0U);
    EXPECT_EQ(expect<ConnectToHost>(core.found(first, now_)).ps, 1U);
    EXPECT_EQ(expect<FindSnapshot>(core.connected(kOwnPs, now_)).ps, 1U);
    return core.found(second, now_);
  }
  // The same, and both were asked to write. Waits for ps 0.
  SnapshotAction tell_both(SnapshotCoordinator& core, const SnapshotRequest& request) const {
    const auto first = expect<RequestShardWrite>(find_both(core, request));
    EXPECT_EQ(first.id.step, 40U);
    const auto second = expect<RequestShardWrite>(core.told(std::nullopt));
    EXPECT_EQ(second.ps, 1U);
    EXPECT_EQ(second.id.attempt, first.id.attempt);
    return core.told(std::nullopt);
  }
  static ShardFile file(const std::string& name) {
    ShardFile file;
    file.name = name;
    return file;
  }

  const TimePoint now_{std::chrono::hours(1)};
  const SnapshotRequest kept_{.sequence = 40, .generation = 1};
  const SnapshotRequest last_{
      .generation = 1, .now = true, .deadline = TimePoint(std::chrono::hours(1) + seconds(4))};
};

TEST_F(SnapshotCoordinatorTest, CollectsOneRangeAfterTheOther) {
  auto core = two_ps(/*sharded=*/false);
  const SnapshotAction action = find_both(core, kept_);
  EXPECT_EQ(expect<KeepState>(action).step, 40U);
  const auto done = expect<SnapshotDone>(core.stored());
  EXPECT_TRUE(done.is_done);
  EXPECT_EQ(done.step, 40U);
}

TEST_F(SnapshotCoordinatorTest, ASnapshotIsOfOneStepAtAllPs) {
  auto core = two_ps(/*sharded=*/false);
  const auto done = expect<SnapshotDone>(find_both(core, kept_, 40, 41));
  EXPECT_FALSE(done.is_done);
  EXPECT_EQ(done.step, std::nullopt);
}

TEST_F(SnapshotCoordinatorTest, WherePsMoveApartTheStepIsThatOfPs0) {
  auto core = two_ps(/*sharded=*/false, /*replicated=*/false, /*same_step=*/false);
  EXPECT_EQ(expect<KeepState>(find_both(core, kept_, 40, 43)).step, 40U);
}

TEST_F(SnapshotCoordinatorTest, TheNextOneIsAskedForOverTheSameChannels) {
  for (const bool sharded : {false, true}) {
    auto core = two_ps(sharded);
    find_both(core, kept_);
    core.stored();
    const auto first = expect<FindSnapshot>(core.begin(kept_));
    EXPECT_EQ(first.ps, 0U);
    EXPECT_EQ(first.fetch, !sharded);
    EXPECT_EQ(expect<FindSnapshot>(core.found(80, now_)).ps, 1U);
    const SnapshotAction action = core.found(80, now_);
    if (sharded) {
      EXPECT_EQ(expect<RequestShardWrite>(action).id.step, 80U);
    } else {
      EXPECT_EQ(expect<KeepState>(action).step, 80U);
    }
  }
}

TEST_F(SnapshotCoordinatorTest, AChannelThatWasClosedMeanwhileIsOpenedAnew) {
  auto core = two_ps(/*sharded=*/false, /*replicated=*/true);
  core.begin(kept_);
  core.connected(kPrimaryHost, now_);
  core.found(40, now_);
  core.connected(kPrimaryHost, now_);
  core.found(40, now_);
  core.stored();
  expect<FindSnapshot>(core.begin(kept_));
  expect<FindSnapshot>(core.found(80, now_));
  const auto anew = expect<ConnectToHost>(core.found(std::nullopt, now_));
  EXPECT_EQ(anew.ps, 1U) << "ps 0's is open";
  EXPECT_EQ(anew.replica, 0U);
  EXPECT_EQ(expect<ConnectToHost>(core.connected(kBackupHost, now_)).replica, 1U);
  expect<FindSnapshot>(core.connected(kPrimaryHost, now_));
  EXPECT_EQ(expect<KeepState>(core.found(80, now_)).step, 80U);
}

TEST_F(SnapshotCoordinatorTest, AfterOneThatCameToNothingAllAreAskedAnew) {
  auto core = two_ps(/*sharded=*/false);
  find_both(core, kept_, 40, 41);
  expect<ConnectToHost>(core.begin(kept_));
  core.failed("the disk is full");
  expect<ConnectToHost>(core.begin(kept_));
}

TEST_F(SnapshotCoordinatorTest, WhoHasTheStateNowIsFoundOutAnew) {
  auto core = two_ps(/*sharded=*/false);
  find_both(core, kept_);
  core.stored();
  EXPECT_EQ(expect<ConnectToHost>(core.begin(last_)).ps, 0U);
  core.connected(kOwnPs, now_);
  EXPECT_EQ(expect<ConnectToHost>(core.found(40, now_)).ps, 1U);
}

TEST_F(SnapshotCoordinatorTest, OneThatWasKeptAndIsLostIsNotAskedForAgain) {
  auto core = two_ps(/*sharded=*/false);
  core.begin(kept_);
  core.connected(kOwnPs, now_);
  EXPECT_FALSE(expect<SnapshotDone>(core.found(std::nullopt, now_)).is_done);
}

TEST_F(SnapshotCoordinatorTest, AStateThatMovesIsAskedForAgainUntilTheDeadline) {
  auto core = two_ps(/*sharded=*/false);
  const auto pause = expect<PauseSnapshot>(find_both(core, last_, 40, 41));
  EXPECT_EQ(pause.until, now_ + milliseconds(20));
  EXPECT_EQ(expect<ConnectToHost>(core.paused()).ps, 0U) << "from the first one on";
  core.connected(kOwnPs, now_);
  const TimePoint late = last_.deadline - milliseconds(20);
  EXPECT_FALSE(expect<SnapshotDone>(core.found(std::nullopt, late)).is_done);
}

TEST_F(SnapshotCoordinatorTest, WhoAsksOnceIsToldAtOnce) {
  auto core = two_ps(/*sharded=*/false);
  SnapshotRequest once = last_;
  once.again = false;
  EXPECT_FALSE(expect<SnapshotDone>(find_both(core, once, 40, 41)).is_done);
  core.begin(once);
  EXPECT_EQ(expect<SnapshotDone>(core.connected(kNobody, now_)).why_not, "");
}

TEST_F(SnapshotCoordinatorTest, AStateThatIsLostIsASentence) {
  for (const HostContact& contact : {kNobody, kNewPs}) {
    auto core = two_ps(/*sharded=*/false);
    core.begin(last_);
    const auto done = expect<SnapshotDone>(core.connected(contact, now_));
    EXPECT_EQ(done.why_not, "ps 0 (a:1) is gone, and with it its part of the state");
    EXPECT_TRUE(done.is_done) << "to try again would not help";
  }
}

TEST_F(SnapshotCoordinatorTest, APsThatIsSilentMayComeBack) {
  auto core = two_ps(/*sharded=*/false);
  core.begin(last_);
  expect<PauseSnapshot>(core.connected(kSilent, now_));
}

TEST_F(SnapshotCoordinatorTest, WithReplicasThePrimaryIsAsked) {
  auto core = two_ps(/*sharded=*/false, /*replicated=*/true);
  EXPECT_EQ(expect<ConnectToHost>(core.begin(last_)).replica, 0U);
  EXPECT_EQ(expect<ConnectToHost>(core.connected(kBackupHost, now_)).replica, 1U);
  expect<FindSnapshot>(core.connected(kPrimaryHost, now_));
  EXPECT_EQ(expect<ConnectToHost>(core.found(40, now_)).replica, 0U);
  EXPECT_EQ(expect<ConnectToHost>(core.connected(kNobody, now_)).replica, 1U);
  expect<FindSnapshot>(core.connected(kPrimaryHost, now_));
}

TEST_F(SnapshotCoordinatorTest, WithReplicasAStateIsLostWithBothHosts) {
  auto core = two_ps(/*sharded=*/false, /*replicated=*/true);
  core.begin(last_);
  core.connected(kNobody, now_);
  expect<PauseSnapshot>(core.connected(kBackupHost, now_));  // it is about to become the primary
  core.paused();
  core.connected(kNewPs, now_);
  EXPECT_THAT(expect<SnapshotDone>(core.connected(kNobody, now_)).why_not, HasSubstr("is gone"));
}

// A second host without a view of the first is none.
TEST_F(SnapshotCoordinatorTest, ASecondHostThatWasToldNothingIsNotAsked) {
  auto core = two_ps(/*sharded=*/false, /*replicated=*/true);
  core.begin(kept_);
  core.connected(kSilent, now_);
  EXPECT_FALSE(expect<SnapshotDone>(core.connected(kOwnPs, now_)).is_done);
}

TEST_F(SnapshotCoordinatorTest, ACheckpointThatCannotBeStoredIsASentence) {
  auto core = two_ps(/*sharded=*/false);
  find_both(core, kept_);
  const auto done = expect<SnapshotDone>(core.failed("the disk is full"));
  EXPECT_EQ(done.why_not, "the disk is full");
  EXPECT_EQ(done.step, std::nullopt);
}

// ---- sharded ----

TEST_F(SnapshotCoordinatorTest, WhatAllHaveWrittenBecomesACheckpoint) {
  auto core = two_ps(/*sharded=*/true);
  const auto await = expect<AwaitWritten>(tell_both(core, kept_));
  EXPECT_EQ(await.ps, 0U);
  EXPECT_EQ(await.deadline, now_ + minutes(10));
  EXPECT_EQ(expect<AwaitWritten>(core.written(file("a"))).ps, 1U);
  const auto commit = expect<CommitShards>(core.written(file("b")));
  ASSERT_EQ(commit.files.size(), 2U);
  EXPECT_EQ(commit.files[0].name, "a");
  EXPECT_EQ(commit.files[1].name, "b");
  EXPECT_EQ(expect<SnapshotDone>(core.stored()).step, 40U);
}

TEST_F(SnapshotCoordinatorTest, NoPsWritesBeforeAllHaveTheSnapshot) {
  auto core = two_ps(/*sharded=*/true);
  EXPECT_FALSE(expect<SnapshotDone>(find_both(core, kept_, 40, 41)).is_done);
}

TEST_F(SnapshotCoordinatorTest, AWriterIsNotWaitedForBeyondTheDeadline) {
  auto core = two_ps(/*sharded=*/true);
  EXPECT_EQ(expect<AwaitWritten>(tell_both(core, last_)).deadline, last_.deadline);
}

TEST_F(SnapshotCoordinatorTest, WhoWritesIsWaitedForBeforeItsFileIsRemoved) {
  auto core = two_ps(/*sharded=*/true);
  tell_both(core, kept_);
  EXPECT_EQ(
      expect<AwaitWritten>(core.written(ShardNotWritten{.sentence = "ps 0 has a full disk"})).ps,
      1U);
  expect<DiscardShards>(core.written(file("b")));
  const auto done = expect<SnapshotDone>(core.discarded(now_));
  EXPECT_EQ(done.why_not, "ps 0 has a full disk");
}

TEST_F(SnapshotCoordinatorTest, APsThatCannotBeToldEndsItAfterThoseThatWrite) {
  auto core = two_ps(/*sharded=*/true);
  expect<RequestShardWrite>(find_both(core, kept_));
  core.told(std::nullopt);
  EXPECT_EQ(expect<AwaitWritten>(core.told("ps 1 is gone")).ps, 0U);
  expect<DiscardShards>(core.written(file("a")));
  EXPECT_EQ(expect<SnapshotDone>(core.discarded(now_)).why_not, "ps 1 is gone");
}

TEST_F(SnapshotCoordinatorTest, AtTheEndOfARunAPsThatIsLostIsWaitedForElsewhere) {
  auto core = two_ps(/*sharded=*/true);
  SnapshotRequest once = last_;
  once.again = false;
  tell_both(core, once);
  core.written(ShardNotWritten{.is_lost = true, .sentence = "ps 0 is gone"});
  expect<DiscardShards>(core.written(file("b")));
  const auto done = expect<SnapshotDone>(core.discarded(now_));
  EXPECT_FALSE(done.is_done);
  EXPECT_EQ(done.why_not, "");
}

TEST_F(SnapshotCoordinatorTest, TheLastSaveOfARunIsTriedAgainOnce) {
  auto core = two_ps(/*sharded=*/true);
  SnapshotRequest once = last_;
  once.again = false;
  for (const bool is_done : {false, true}) {
    tell_both(core, once);
    core.written(file("a"));
    expect<CommitShards>(core.written(file("b")));
    expect<DiscardShards>(core.failed("file a is not there"));
    const auto done = expect<SnapshotDone>(core.discarded(now_));
    EXPECT_EQ(done.is_done, is_done);
    EXPECT_EQ(done.why_not, "file a is not there");
  }
}

TEST_F(SnapshotCoordinatorTest, FilesThatBecomeNoCheckpointAreRemoved) {
  auto core = two_ps(/*sharded=*/true);
  tell_both(core, kept_);
  core.written(file("a"));
  const auto commit = expect<CommitShards>(core.written(file("b")));
  EXPECT_EQ(expect<DiscardShards>(core.failed("they share no disk")).id.attempt, commit.id.attempt);
  EXPECT_EQ(expect<SnapshotDone>(core.discarded(now_)).why_not, "they share no disk");
}

TEST_F(SnapshotCoordinatorTest, EachSaveHasANumberOfItsOwn) {
  auto core = two_ps(/*sharded=*/true);
  const auto first = expect<RequestShardWrite>(find_both(core, kept_));
  core.begin(kept_);  // over the same channels
  core.found(40, now_);
  const auto second = expect<RequestShardWrite>(core.found(40, now_));
  EXPECT_NE(first.id.attempt, second.id.attempt);
}

// ---- when ----

// By steps only; the default is by time only, every 10 s.
CheckpointOptions every_steps(std::uint64_t steps) {
  CheckpointOptions options;
  options.save_steps = steps;
  options.save_secs = seconds(0);
  return options;
}

TEST(SnapshotSchedule, IsDueByStepsOrByTime) {
  const SnapshotSchedule::TimePoint begin{std::chrono::hours(1)};
  SnapshotSchedule by_steps(every_steps(10), 100, begin);
  EXPECT_FALSE(by_steps.wants(9, false, begin + seconds(100)));
  EXPECT_TRUE(by_steps.wants(10, false, begin));
  EXPECT_FALSE(by_steps.wants(11, false, begin));
  SnapshotSchedule by_time(CheckpointOptions{}, 100, begin);
  EXPECT_FALSE(by_time.wants(10, false, begin + seconds(9)));
  EXPECT_TRUE(by_time.wants(11, false, begin + seconds(10)));
  EXPECT_FALSE(by_time.wants(12, false, begin + seconds(19)));
  EXPECT_TRUE(by_time.wants(13, false, begin + seconds(20)));
}

TEST(SnapshotSchedule, OneThatWasDueWhileAnotherWasUnderWayComesNext) {
  const SnapshotSchedule::TimePoint now{std::chrono::hours(1)};
  SnapshotSchedule schedule(every_steps(10), 100, now);
  EXPECT_FALSE(schedule.wants(10, true, now));
  EXPECT_FALSE(schedule.wants(11, true, now));
  EXPECT_TRUE(schedule.wants(12, false, now));
}

TEST(SnapshotSchedule, OneThatIsAskedForComesWithTheNextStep) {
  const SnapshotSchedule::TimePoint now{std::chrono::hours(1)};
  SnapshotSchedule schedule(every_steps(1000), 2000, now);
  EXPECT_FALSE(schedule.wants(10, false, now));
  schedule.ask();
  EXPECT_FALSE(schedule.wants(11, true, now));
  EXPECT_TRUE(schedule.wants(12, false, now));
  EXPECT_FALSE(schedule.wants(13, false, now));
}

TEST(SnapshotSchedule, TheLastStepIsNotWantedHere) {
  const SnapshotSchedule::TimePoint now{std::chrono::hours(1)};
  SnapshotSchedule schedule(every_steps(10), 100, now);
  EXPECT_FALSE(schedule.wants(100, false, now));
}

}  // namespace
}  // namespace disttf::roles
