// A driver's servers, in time that the test makes.
#include "roles/servers/core/server_pool.h"

#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/outcome.h"
#include "tests/roles/virtual_time.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr milliseconds kServerPause{250};  // the longest between two attempts

// Servers 0 and 1: ps 0 and worker 0.
class ServerPoolTest : public testing::Test {
 protected:
  using TimePoint = ServerPool::TimePoint;

  ServerPoolTest() {
    take_effects();
    dialed_.clear();
  }
  static net::Cluster listed() {
    net::Cluster cluster;
    cluster.ps = {{.host = "p", .port = 1}};
    cluster.workers = {{.host = "w", .port = 2}};
    return cluster;
  }
  static Timeouts patience() {
    return {.start = seconds(300),
            .peer = seconds(60),
            .worker = seconds(60),
            .heartbeat_timeout = seconds(10)};
  }

  void take_effects() {
    server_pool_.effects().drain([this](const auto& effect) { take(effect); });
  }
  void take(const DialServer& effect) { dialed_.push_back(effect.server); }
  void take(const RequestTask& effect) { requested_.push_back(effect.server); }
  void take(const BeatServer& effect) { ++beats_[effect.server]; }
  void take(const LeaveServer& effect) { left_.push_back(effect.server); }
  void take(const Note& effect) { lines_.push_back(effect.text); }
  void take(const PoolReady& /*effect*/) { ++ready_; }
  void take(const PoolDone& /*effect*/) { ++done_; }
  void take(const FailRun& effect) {
    if (!failure_) {
      failure_ = effect;
    }
  }

  void dial(std::size_t server, const DialOutcome& outcome) {
    server_pool_.dialed(server, outcome, now_);
    take_effects();
  }
  void gather() {
    dial(0, ServerReached{});
    dial(1, ServerReached{});
  }
  void end(std::size_t server, const net::TaskEnd& end) {
    server_pool_.task_ended(server, end, now_);
    take_effects();
  }
  void lose(std::size_t server) {
    server_pool_.closed(server, "End of file", now_);
    take_effects();
  }
  void pass(milliseconds time) {
    pass_time(server_pool_, now_, now_ + time, [this] { take_effects(); });
  }
  // Every attempt to reach it fails, for that long.
  void fail_to_reach(std::size_t server, milliseconds time) {
    const TimePoint end = now_ + time;
    while (now_ < end && !failure_) {
      dial(server, ServerUnreachable{"Connection refused"});
      pass(kServerPause);
    }
  }

  TimePoint now_{std::chrono::hours(1)};
  ServerPool server_pool_{listed(), patience(), 7, now_};
  std::vector<std::size_t> dialed_;
  std::vector<std::size_t> requested_;
  std::map<std::size_t, int> beats_;
  std::vector<std::size_t> left_;
  std::vector<std::string> lines_;
  int ready_ = 0;
  int done_ = 0;
  std::optional<FailRun> failure_;
};

TEST_F(ServerPoolTest, NothingIsRequestedBeforeAllAreThere) {
  dial(1, ServerReached{});
  EXPECT_THAT(requested_, IsEmpty());
  pass(seconds(30));
  EXPECT_EQ(beats_[1], 31) << "a waiting server receives heartbeats of the driver";
  dial(0, ServerReached{});
  EXPECT_THAT(requested_, ElementsAre(0, 1));
  EXPECT_EQ(ready_, 1);
}

TEST_F(ServerPoolTest, WhoIsNotThereInTimeIsNamed) {
  dial(1, ServerReached{});
  fail_to_reach(0, seconds(301));
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->exit_code, kLostPeers);
  EXPECT_EQ(failure_->sentence, "not connected after 300 s: ps 0 (p:1): Connection refused");
  EXPECT_THAT(requested_, IsEmpty());
}

TEST_F(ServerPoolTest, TimeThatTheDriverMissedDoesNotCountTowardTimeouts) {
  dial(1, ServerReached{});
  now_ += std::chrono::hours(2);
  server_pool_.forgive(std::chrono::hours(2));
  dial(0, ServerUnreachable{"Connection refused"});
  EXPECT_FALSE(failure_);
  pass(kServerPause);
  EXPECT_THAT(dialed_, ElementsAre(0));
}

TEST_F(ServerPoolTest, AServerThatRefusesEndsTheRunWithItsSentence) {
  dial(0, ServerRefused{{.exit_code = kUsage, .sentence = "other lists"}});
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->exit_code, kUsage);
  EXPECT_EQ(failure_->sentence, "ps 0 (p:1) replied: other lists");
}

TEST_F(ServerPoolTest, WhenAllTasksAreOverTheServersAreLeft) {
  gather();
  end(0, {.exit_code = kDone});
  EXPECT_THAT(left_, ElementsAre(0));
  EXPECT_EQ(done_, 0);
  end(1, {.exit_code = kDone});
  EXPECT_EQ(done_, 1);
  pass(seconds(5));
  EXPECT_EQ(beats_[0], 0);
}

TEST_F(ServerPoolTest, ATaskThatWasKilledIsRequestedAgainOverTheSameChannel) {
  gather();
  requested_.clear();
  end(1, {.signal = 9, .last_line = "bye"});
  EXPECT_THAT(lines_,
              ElementsAre("worker 0 (w:2) was killed by signal 9 (Killed); starting it again "
                          "(1 of 10 restarts): bye"));
  pass(kServerPause);
  EXPECT_THAT(requested_, ElementsAre(1));
  EXPECT_THAT(dialed_, IsEmpty());
}

TEST_F(ServerPoolTest, AServerThatIsLostIsDialedAndItsTaskRequestedAgain) {
  gather();
  requested_.clear();
  lose(1);
  EXPECT_THAT(left_, ElementsAre(1));
  pass(kServerPause);
  EXPECT_THAT(dialed_, ElementsAre(1));
  dial(1, ServerUnreachable{"Connection refused"});
  pass(kServerPause);
  EXPECT_THAT(dialed_, ElementsAre(1, 1));
  EXPECT_THAT(requested_, IsEmpty());
  dial(1, ServerReached{});
  EXPECT_THAT(requested_, ElementsAre(1));
}

TEST_F(ServerPoolTest, AServerThatStaysAwayEndsTheRun) {
  gather();
  lose(1);
  pass(kServerPause);
  fail_to_reach(1, seconds(61));
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->exit_code, kLostPeers);
  EXPECT_EQ(failure_->sentence, "worker 0 (w:2) has been gone for 60 s: Connection refused");
}

// A server that was frozen: its task sees only when it thaws that the channel is gone.
TEST_F(ServerPoolTest, AServerThatIsStillAtWorkForThisDriverIsAskedAgain) {
  gather();
  lose(1);
  lines_.clear();
  const ServerRefused busy{{.exit_code = kLostPeers, .sentence = "is busy"}};
  for (int each = 0; each < 3; ++each) {
    pass(kServerPause);
    dial(1, busy);
  }
  EXPECT_FALSE(failure_);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("is still busy with this driver's last request")));
  pass(kServerPause);
  dial(1, ServerReached{});
  EXPECT_EQ(requested_.back(), 1U);
}

TEST_F(ServerPoolTest, AServerThatIsAtWorkForAnotherDriverEndsTheRun) {
  dial(0, ServerRefused{{.exit_code = kLostPeers, .sentence = "is busy"}});
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->sentence, "ps 0 (p:1) replied: is busy");
}

TEST_F(ServerPoolTest, ATaskThatFailsForGoodEndsTheRunAndNothingIsRequestedAgain) {
  gather();
  requested_.clear();
  end(0, {.exit_code = kUsage, .last_line = "bad flag"});
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->exit_code, kUsage);
  EXPECT_EQ(failure_->sentence, "ps 0 (p:1) ended with exit code 2; stopping the others: bad flag");
  lose(1);
  pass(seconds(5));
  EXPECT_THAT(requested_, IsEmpty());
}

TEST_F(ServerPoolTest, ARefusalInPlaceOfAnEndIsTheServersSentence) {
  gather();
  server_pool_.refused(1, {.exit_code = kError, .sentence = "cannot train"}, "refused", now_);
  take_effects();
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->sentence, "worker 0 (w:2) replied: cannot train");
  EXPECT_THAT(left_, ElementsAre(1));
}

}  // namespace
}  // namespace disttf::roles
