// Whom a server serves, in time that the test makes; and what it computes of an order.
#include "roles/servers/core/server_controller.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "net/wire/compute_request.h"
#include "roles/servers/core/compute_evaluation.h"

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

}  // namespace
}  // namespace disttf::roles
