// Whom a server serves, in time that the test makes; and what it computes of an order.
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/wire/server_requests.h"
#include "roles/servers/core/compute_evaluation.h"
#include "roles/servers/core/server_controller.h"
#include "roles/servers/core/server_pool.h"
#include "run/outcome.h"
#include "tests/roles/virtual_time.h"

namespace disttf::roles {
namespace {

using net::FrameKind;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Task server_task(const net::TaskId& self) {
  Task task;
  task.cluster.ps = {{.host = "p", .port = 1}};
  task.cluster.workers = {{.host = "w0", .port = 2}, {.host = "w1", .port = 3}};
  task.self = self;
  task.incarnation = 42;
  return task;
}

constexpr net::TaskId kThisServer{.job = net::Job::kWorker, .index = 0};
constexpr net::TaskId kOtherServer{.job = net::Job::kWorker, .index = 1};

class ServerControllerTest : public testing::Test {
 protected:
  void take_effects() {
    core_.effects().drain([this](const auto& effect) { take(effect); });
  }
  void take(const OpenServerPort& /*effect*/) { did_.emplace_back("open"); }
  void take(const CloseServerPort& /*effect*/) { did_.emplace_back("close"); }
  void take(const StartRequestedTask& /*effect*/) { did_.emplace_back("start"); }
  void take(const StopRequestedTask& /*effect*/) { did_.emplace_back("stop"); }
  void take(const SendToDriver& effect) { sent_.push_back(effect.header.kind); }
  static void take(const ServerLine& /*effect*/) {}
  void take(const EndServer& effect) { did_.push_back("end after " + std::to_string(effect.last)); }
  std::vector<std::string> take_did() {
    take_effects();
    return std::exchange(did_, {});
  }
  // By driver 1.
  void request() {
    ASSERT_FALSE(core_.requested(1, "driver", now_));
    ASSERT_THAT(take_did(), ElementsAre("open", "close", "start"));
  }
  // What the driver is refused with.
  std::string refusal(ServerConnectionId from) {
    const auto refusal = core_.requested(from, "driver", now_);
    return refusal ? refusal->sentence : "";
  }

  static net::Hello hello_for(net::ChannelPurpose purpose) {
    net::Hello hello;
    hello.purpose = purpose;
    return hello;
  }

  ServerController::TimePoint now_{std::chrono::hours(1)};
  const Task task_ = server_task(kThisServer);
  ServerController core_{task_};
  std::vector<std::string> did_;
  std::vector<FrameKind> sent_;
};

TEST_F(ServerControllerTest, TheTaskHasThePortAsLongAsItLives) {
  request();
  core_.task_ended({.exit_code = 0});
  EXPECT_THAT(take_did(), IsEmpty()) << "the driver may order it again";
  EXPECT_THAT(sent_, ElementsAre(FrameKind::kTaskEnded));
  core_.closed(1);
  EXPECT_THAT(take_did(), ElementsAre("open"));
}

TEST_F(ServerControllerTest, ATaskIsRequestedAgainOverTheSameChannel) {
  request();
  core_.task_ended({.signal = 9});
  EXPECT_EQ(refusal(1), "");
  EXPECT_THAT(take_did(), ElementsAre("close", "start"));
}

TEST_F(ServerControllerTest, WithTheDriverItsTaskEnds) {
  request();
  core_.closed(1);
  EXPECT_THAT(take_did(), ElementsAre("stop")) << "the port is still the task's";
  EXPECT_EQ(refusal(2), "worker 0 (w0:2) is busy");
  core_.task_ended({.signal = 15});
  EXPECT_THAT(take_did(), ElementsAre("open"));
  EXPECT_THAT(sent_, IsEmpty()) << "no driver is connected";
  EXPECT_EQ(refusal(2), "");
}

TEST_F(ServerControllerTest, AnotherConnectionThatClosesIsNotTheDrivers) {
  request();
  core_.closed(2);
  EXPECT_THAT(take_did(), IsEmpty());
}

TEST_F(ServerControllerTest, OneDriverAtATime) {
  request();
  EXPECT_EQ(refusal(2), "worker 0 (w0:2) is busy");
  EXPECT_EQ(refusal(1), "worker 0 (w0:2) is busy");
  core_.task_ended({});
  EXPECT_EQ(refusal(2), "worker 0 (w0:2) is busy") << "until its driver lets it go";
}

TEST_F(ServerControllerTest, TheDriverHearsABeatEverySecond) {
  take_effects();
  EXPECT_EQ(core_.deadline(), ServerController::TimePoint::max());
  request();
  for (int each = 0; each < 3; ++each) {
    now_ = core_.deadline();
    core_.time(now_);
  }
  take_effects();
  EXPECT_EQ(now_, ServerController::TimePoint{std::chrono::hours(1)} + milliseconds(2000));
  EXPECT_THAT(sent_,
              ElementsAre(FrameKind::kHeartbeat, FrameKind::kHeartbeat, FrameKind::kHeartbeat));
}

TEST_F(ServerControllerTest, ATaskThatCannotBeStartedIsNone) {
  request();
  EXPECT_EQ(core_.could_not_start("no memory").sentence, "worker 0 (w0:2) cannot train: no memory");
  core_.closed(1);
  EXPECT_THAT(take_did(), ElementsAre("open"));
  EXPECT_EQ(refusal(2), "");
}

TEST_F(ServerControllerTest, OnlyPsAndWorkersTrain) {
  Task evaluator = server_task({.job = net::Job::kEvaluator, .index = 0});
  evaluator.cluster.chief = {{.host = "c", .port = 4}};
  evaluator.self = {.job = net::Job::kChief, .index = 0};
  ServerController core(evaluator);
  const auto refused = core.requested(1, "driver", now_);
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->sentence, HasSubstr("is neither ps nor worker, so it cannot train"));
}

TEST_F(ServerControllerTest, ASignalEndsItAtOnceOrAfterItsTask) {
  take_effects();
  did_.clear();
  core_.stop();
  EXPECT_THAT(take_did(), ElementsAre("end after 0"));
}

TEST_F(ServerControllerTest, ASignalLetsTheDriverHearHowItsTaskEnded) {
  request();
  core_.stop();
  EXPECT_THAT(take_did(), ElementsAre("stop"));
  EXPECT_EQ(refusal(1), "worker 0 (w0:2) is busy");
  core_.task_ended({.signal = 15});
  EXPECT_THAT(take_did(), ElementsAre("end after 1"));
  EXPECT_THAT(sent_, ElementsAre(FrameKind::kTaskEnded));
}

TEST_F(ServerControllerTest, TrainersAreTurnedAway) {
  const auto answer = core_.welcome(hello_for(net::ChannelPurpose::kStep));
  EXPECT_THAT(std::get<net::Refusal>(answer).sentence, HasSubstr("waits for requests"));
  const auto welcome = core_.welcome(hello_for(net::ChannelPurpose::kRequest));
  EXPECT_EQ(std::get<net::Welcome>(welcome).incarnation, 42U);
}

// ---- orders ----

class ComputeEvaluationTest : public testing::Test {
 protected:
  using Operation = net::Operation;

  static net::ComputeNode number(std::int64_t value, const net::TaskId& task = kThisServer) {
    return {.operation = Operation::kNumber, .task = task, .value = value};
  }
  static net::ComputeNode add(const net::TaskId& task = kThisServer) {
    return {.operation = Operation::kAdd, .task = task};
  }
  [[nodiscard]] ComputeStep evaluated(const std::vector<net::ComputeResult>& answers = {}) const {
    return evaluate(request_, task_, "disttf 1", answers);
  }

  const Task task_ = server_task(kThisServer);
  net::ComputeRequest request_;
};

TEST_F(ComputeEvaluationTest, ItsOwnPartsItComputes) {
  request_ = {add(), add(), number(1), number(2), number(40)};
  const ComputeStep step = evaluated();
  EXPECT_EQ(std::get<net::ComputeResult>(step.outcome).value, 43);
  EXPECT_THAT(step.sums, ElementsAre(3, 43));
}

TEST_F(ComputeEvaluationTest, OthersAreAskedForTheirPartsOneAfterTheOther) {
  request_ = {add(), add(kOtherServer), number(1), number(2), number(5, kOtherServer)};
  const auto first = std::get<AskServer>(evaluated().outcome);
  EXPECT_EQ(first.task, kOtherServer);
  EXPECT_EQ(first.part.size(), 3U);
  const auto second = std::get<AskServer>(evaluated({{.value = 3}}).outcome);
  EXPECT_EQ(second.part.size(), 1U);
  EXPECT_EQ(second.part.front().value, 5);
  const ComputeStep last = evaluated({{.value = 3}, {.value = 5}});
  EXPECT_EQ(std::get<net::ComputeResult>(last.outcome).value, 8);
  EXPECT_THAT(last.sums, ElementsAre(8));
}

TEST_F(ComputeEvaluationTest, ASumThatOverflowsWraps) {
  request_ = {add(), number(INT64_MAX), number(1)};
  EXPECT_EQ(std::get<net::ComputeResult>(evaluated().outcome).value, INT64_MIN);
}

TEST_F(ComputeEvaluationTest, ItSaysWhatItIs) {
  request_ = {{.operation = Operation::kAsk, .task = kThisServer},
              {.operation = Operation::kDescribe, .task = kThisServer}};
  EXPECT_EQ(std::get<net::ComputeResult>(evaluated().outcome).text, "disttf 1");
}

TEST_F(ComputeEvaluationTest, ATaskThatIsNotThereIsNotAsked) {
  request_ = {number(1, {.job = net::Job::kWorker, .index = 9})};
  EXPECT_EQ(std::get<net::Refusal>(evaluated().outcome).sentence,
            "there is no worker 9 in the cluster of worker 0 (w0:2)");
}

// A driver's servers, in time that the test makes.

using std::chrono::seconds;

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
