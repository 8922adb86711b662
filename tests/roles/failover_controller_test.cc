// The chief monitors the hosts of replicated ranges, in virtual time.
#include "roles/chief/core/failover_controller.h"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "tests/roles/virtual_time.h"

namespace disttf::roles {
namespace {

using net::FrameKind;
using net::ReplicaRole;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FailoverControllerTest : public testing::Test {
 protected:
  using TimePoint = FailoverController::TimePoint;

  // Range 0 has hosts 0 and 1, which are ps 0 and ps 1. Range 1 has hosts 2 and 3, which are ps 1
  // and ps 0.
  static Task two_ps() {
    Task task;
    task.cluster.ps = {{.host = "ps0", .port = 1}, {.host = "ps1", .port = 1}};
    task.cluster.workers = {{.host = "w0", .port = 2}};
    task.self = {.job = net::Job::kWorker, .index = 0};
    task.incarnation = 7;
    return task;
  }

  void take_effects() {
    core_.effects().drain([this](const auto& effect) { take(effect); });
  }
  void take(const DialHost& effect) { dialed_.push_back(effect.host); }
  void take(const SendToHost& effect) {
    net::View view;
    if (effect.header.kind == FrameKind::kView) {
      EXPECT_FALSE(net::decode(effect.body, view));
      views_[effect.host] = view;
    } else {
      sent_[effect.host].push_back(effect.header.kind);
    }
  }
  void take(const Note& effect) { log_.push_back(effect.text); }

  void receive_report(HostNumber host, const net::Report& report) {
    core_.heard(host, report);
    take_effects();
  }
  void reach_all() {
    for (HostNumber host = 0; host < 4; ++host) {
      core_.reached(host, now_);
    }
    take_effects();
  }
  // Advances the time in steps, one for each deadline.
  void pass(milliseconds time) {
    pass_time(core_, now_, now_ + time, [this] { take_effects(); });
  }
  // Host 0 serves range 0, with host 1 as its backup.
  void pair_range_0() {
    receive_report(0, {});
    receive_report(1, {});
    receive_report(0, {.view = {7, 1}, .replica_role = ReplicaRole::kPrimary, .holds = true});
    receive_report(1, {.view = {7, 1}, .replica_role = ReplicaRole::kBackup, .holds = true});
    receive_report(
        0,
        {.view = {7, 1}, .replica_role = ReplicaRole::kPrimary, .holds = true, .wants_pair = true});
    receive_report(0, {.view = {7, 2}, .replica_role = ReplicaRole::kPrimary, .holds = true});
    receive_report(1, {.view = {7, 2}, .replica_role = ReplicaRole::kBackup, .holds = true});
  }

  const Task task_ = two_ps();
  TimePoint now_{std::chrono::hours(1)};
  FailoverController core_{task_, 7, now_};
  std::vector<HostNumber> dialed_;
  std::map<HostNumber, std::vector<FrameKind>> sent_;
  std::map<HostNumber, net::View> views_;  // the last one
  std::vector<std::string> log_;
};

TEST_F(FailoverControllerTest, DialsEveryHostAtOnce) {
  take_effects();
  EXPECT_THAT(dialed_, ElementsAre(0, 1, 2, 3));
}

TEST_F(FailoverControllerTest, AHostThatIsNotThereIsTriedAgainSoonAndForEver) {
  take_effects();
  for (int each = 0; each < 20; ++each) {
    dialed_.clear();
    core_.not_reached(2, now_);
    EXPECT_THAT(dialed_, IsEmpty()) << "without a pause";
    pass(kLongestDialPause);
    EXPECT_THAT(dialed_, ElementsAre(2));
  }
}

TEST_F(FailoverControllerTest, WhoIsReachedHearsABeatEverySecond) {
  core_.reached(1, now_);
  take_effects();
  pass(milliseconds(3500));
  EXPECT_THAT(sent_[1],
              ElementsAre(FrameKind::kHeartbeat, FrameKind::kHeartbeat, FrameKind::kHeartbeat));
  EXPECT_THAT(sent_[0], IsEmpty());
}

TEST_F(FailoverControllerTest, BothHostsAreToldAViewAndOneLineSaysIt) {
  reach_all();
  receive_report(0, {});
  EXPECT_THAT(views_, IsEmpty()) << "one host has not reported";
  EXPECT_FALSE(core_.all_have_views());
  receive_report(1, {});
  EXPECT_EQ(views_.at(0).primary, 0);
  EXPECT_EQ(views_.at(0), views_.at(1));
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_EQ(log_[0], "range 0: view 1, ps 0 (ps0:1) alone");
  receive_report(2, {});
  receive_report(3, {});
  EXPECT_TRUE(core_.all_have_views());
}

TEST_F(FailoverControllerTest, APrimaryThatIsLostIsReplacedByItsBackup) {
  reach_all();
  pair_range_0();
  views_.clear();
  core_.closed(0, now_);
  take_effects();
  EXPECT_THAT(views_, testing::SizeIs(1)) << "the one that is lost is not told";
  EXPECT_EQ(views_.at(1), (net::View{.number = {7, 3}, .primary = 1, .paired = false}));
  EXPECT_EQ(log_.back(), "range 0: view 3, ps 1 (ps1:1) alone");
  // When it returns, it receives the view.
  pass(kLongestDialPause);
  EXPECT_EQ(dialed_.back(), 0U);
  core_.reached(0, now_);
  receive_report(0, {.view = {7, 2}, .replica_role = ReplicaRole::kPrimary, .holds = true});
  EXPECT_EQ(views_.at(0).number.count, 3U);
}

TEST_F(FailoverControllerTest, WhoMissedAViewIsToldItAgain) {
  reach_all();
  pair_range_0();
  views_.clear();
  receive_report(1, {.view = {7, 1}, .replica_role = ReplicaRole::kBackup, .holds = true});
  EXPECT_EQ(views_.at(1).number.count, 2U);
  EXPECT_FALSE(views_.contains(0));
}

TEST_F(FailoverControllerTest, AViewOfTheChiefBeforeItIsToldAnewUnderItsOwnNumber) {
  reach_all();
  receive_report(
      0, {.view = {6, 4}, .replica_role = ReplicaRole::kPrimary, .holds = true, .paired = true});
  receive_report(
      1, {.view = {6, 4}, .replica_role = ReplicaRole::kBackup, .holds = true, .paired = true});
  for (const HostNumber host : {0U, 1U}) {
    EXPECT_EQ(views_.at(host), (net::View{.number = {7, 4}, .primary = 0, .paired = true}));
  }
}

// Otherwise it would serve the range without a state, while the other host has everything.
TEST_F(FailoverControllerTest, ANewProcessIsNotToldThatItIsThePrimaryOfAPair) {
  reach_all();
  receive_report(
      0, {.view = {6, 4}, .replica_role = ReplicaRole::kPrimary, .holds = true, .paired = true});
  receive_report(
      1, {.view = {6, 4}, .replica_role = ReplicaRole::kBackup, .holds = true, .paired = true});
  views_.clear();
  core_.closed(0, now_);
  core_.reached(0, now_);
  receive_report(0, {});
  EXPECT_FALSE(views_.contains(0)) << "the other host has not received a view yet";
  receive_report(
      1, {.view = {7, 4}, .replica_role = ReplicaRole::kBackup, .holds = true, .paired = true});
  for (const HostNumber host : {0U, 1U}) {
    EXPECT_EQ(views_.at(host), (net::View{.number = {7, 5}, .primary = 1, .paired = false}));
  }
}

TEST_F(FailoverControllerTest, WhereTheBackupOfAPairIsLostTooTheNewProcessBeginsAnew) {
  reach_all();
  pair_range_0();
  views_.clear();
  core_.closed(1, now_);
  core_.closed(0, now_);
  core_.reached(0, now_);
  receive_report(0, {});
  EXPECT_EQ(views_.at(0), (net::View{.number = {7, 2}, .primary = 0, .paired = true}));
}

// The host that closed its channel is not lost: it follows another chief.
TEST_F(FailoverControllerTest, AChiefThatWasReplacedSaysNothingMore) {
  reach_all();
  pair_range_0();
  views_.clear();
  dialed_.clear();
  EXPECT_EQ(core_.replaced_by(), 0U);
  core_.refused(0, 9);
  core_.closed(0, now_);
  receive_report(1, {.view = {7, 1}, .replica_role = ReplicaRole::kBackup, .holds = true});
  pass(milliseconds(500));
  EXPECT_THAT(views_, IsEmpty());
  EXPECT_THAT(dialed_, IsEmpty());
  EXPECT_EQ(core_.replaced_by(), 9U);
}

// A chief that no host has welcomed may be the newer one; so may a chief that has only received the
// other's views.
TEST_F(FailoverControllerTest, WhoIsRefusedWhereItWasWelcomedHasBeenReplaced) {
  core_.reached(1, now_);
  core_.refused(0, 9);
  receive_report(1, {.view = {8, 1}, .replica_role = ReplicaRole::kBackup, .holds = true});
  EXPECT_EQ(core_.replaced_by(), 9U);
  EXPECT_FALSE(core_.is_overtaken());
  core_.closed(1, now_);  // by the connection loss between the two
  core_.refused(1, 9);
  EXPECT_TRUE(core_.is_overtaken());
}

TEST_F(FailoverControllerTest, ARefusalForAnotherReasonReplacesNoProcess) {
  reach_all();
  core_.refused(1, 0);
  EXPECT_EQ(core_.replaced_by(), 0U);
  EXPECT_FALSE(core_.is_overtaken());
}

// A ps that lives on with another configuration refuses the chief, and dies: its end is what the
// chief waits for, and not a reason to wait for ever.
TEST_F(FailoverControllerTest, ViewsAreSentOnceTheProcessThatRefusedTheChiefIsGone) {
  core_.reached(0, now_);
  core_.reached(1, now_);
  core_.refused_for_good(2);
  core_.not_reached(2, now_);
  receive_report(0, {});
  receive_report(1, {});
  EXPECT_THAT(views_, IsEmpty());
  core_.reached(2, now_);
  take_effects();
  ASSERT_TRUE(views_.contains(0));
  EXPECT_EQ(views_[0].primary, 0);
  EXPECT_TRUE(views_.contains(1));
}

TEST_F(FailoverControllerTest, AViewOfANewerChiefSaysThatThereIsOne) {
  reach_all();
  pair_range_0();
  views_.clear();
  receive_report(1, {.view = {9, 1}, .replica_role = ReplicaRole::kBackup, .holds = true});
  core_.closed(0, now_);
  take_effects();
  EXPECT_EQ(core_.replaced_by(), 9U);
  EXPECT_THAT(views_, IsEmpty());
}

TEST_F(FailoverControllerTest, TheEndIsToldToAllAndToThoseThatComeBack) {
  reach_all();
  core_.closed(3, now_);
  core_.finish();
  take_effects();
  for (const HostNumber host : {0U, 1U, 2U}) {
    EXPECT_THAT(sent_[host], ElementsAre(FrameKind::kShutdown));
  }
  EXPECT_THAT(sent_[3], IsEmpty());
  core_.reached(3, now_);
  take_effects();
  EXPECT_THAT(sent_[3], ElementsAre(FrameKind::kShutdown));
  for (HostNumber host = 0; host < 4; ++host) {
    EXPECT_FALSE(core_.has_ended());
    receive_report(host, {.finished = true});
  }
  EXPECT_TRUE(core_.has_ended());
}

// Ps 1 is hosts 1 and 2. It has reported for one range that the run is over, and is then lost.
TEST_F(FailoverControllerTest, AProcessThatHasEndedAndIsGoneIsNotWaitedFor) {
  reach_all();
  core_.finish();
  receive_report(0, {.finished = true});
  receive_report(3, {.finished = true});
  receive_report(1, {.finished = true});
  core_.closed(2, now_);
  EXPECT_FALSE(core_.has_ended()) << "it may have been cut off alone";
  pass(kLongestDialPause);
  dialed_.clear();
  core_.not_reached(2, now_);
  EXPECT_TRUE(core_.has_ended());
  pass(milliseconds(5000));
  EXPECT_THAT(dialed_, IsEmpty());
}

// The chief before this one was lost while it notified the hosts of the end. No host of that range
// will get a view.
TEST_F(FailoverControllerTest, AHostMaySayThatTheRunIsOver) {
  reach_all();
  receive_report(1, {});
  EXPECT_FALSE(core_.is_run_over());
  receive_report(0, {.finished = true});
  EXPECT_TRUE(core_.is_run_over());
  EXPECT_FALSE(core_.all_have_views());
}

// Until the chief ends the run itself, another process may replace one that ended before.
TEST_F(FailoverControllerTest, AHostThatHasEndedIsDialedAgainUntilTheChiefEndsTheRun) {
  reach_all();
  receive_report(0, {.finished = true});
  core_.closed(0, now_);
  dialed_.clear();
  pass(kLongestDialPause);
  EXPECT_THAT(dialed_, ElementsAre(0));
  core_.reached(0, now_);
  core_.finish();
  take_effects();
  EXPECT_THAT(sent_[0], testing::Contains(FrameKind::kShutdown)) << "to a process that is new";
}

// Before the run's end no host is abandoned.
TEST_F(FailoverControllerTest, AHostThatIsGoneIsWaitedForAsLongAsTheRunLasts) {
  reach_all();
  receive_report(1, {.finished = true});
  core_.closed(2, now_);
  pass(kLongestDialPause);
  dialed_.clear();
  core_.not_reached(2, now_);
  pass(kLongestDialPause);
  EXPECT_THAT(dialed_, testing::Contains(2));
}

}  // namespace
}  // namespace disttf::roles
