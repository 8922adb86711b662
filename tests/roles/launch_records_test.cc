// The records of a launch about its tasks: each change once, and as a sentence.
#include "roles/launch/shell/launch_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Json = nlohmann::json;

class LaunchRecordsTest : public testing::Test {
 protected:
  // "task running 4711", "warning killed worker:1 was killed ..."
  std::vector<std::string> take() { return std::exchange(told_, {}); }
  void hear(const std::string& line) {
    const Json record = Json::parse(line);
    const std::string kind = record.at("kind");
    if (kind == "task") {
      told_.push_back("task " + record.at("state").get<std::string>() + " " +
                      record.at("pid").dump());
    } else if (kind == "event") {
      told_.push_back(record.at("level").get<std::string>() + " " +
                      record.at("what").get<std::string>() + " " +
                      record.at("text").get<std::string>());
    } else {
      told_.push_back(kind + " " + record.at("state").get<std::string>());
    }
  }

  std::vector<std::string> told_;
  LaunchRecords records_{[this](const std::string& line) { hear(line); }};
  TaskStatus worker_{.id = {.job = net::Job::kWorker, .index = 1},
                     .address = {.host = "127.0.0.1", .port = 4001},
                     .pid = 4711,
                     .since = {}};
  SupervisedTask state_{.name = "[worker:1]", .lives = true};
};

TEST_F(LaunchRecordsTest, ATaskIsStartedKilledAndStartedAgain) {
  records_.task(worker_, state_);
  EXPECT_THAT(take(), ElementsAre("task running 4711",
                                  "info started worker:1 was started at 127.0.0.1:4001"));
  records_.task(worker_, state_);
  EXPECT_THAT(take(), IsEmpty()) << "nothing has changed";
  worker_.pid = -1;
  worker_.state = TaskState::kWaiting;
  state_.ending = Ending{.signal = SIGKILL};
  records_.task(worker_, state_);
  EXPECT_THAT(
      take(),
      ElementsAre("task waiting null",
                  "warning killed worker:1 was killed by signal 9 (Killed); it will be restarted"));
  worker_.pid = 4712;
  worker_.state = TaskState::kRunning;
  worker_.restarts = 1;
  worker_.address.port = 4002;
  records_.task(worker_, state_);
  EXPECT_THAT(take(), ElementsAre("task running 4712",
                                  "info restarted worker:1 was restarted at 127.0.0.1:4002"));
}

TEST_F(LaunchRecordsTest, ATaskThatIsDoneIsNoWarning) {
  records_.task(worker_, state_);
  take();
  worker_.pid = -1;
  worker_.state = TaskState::kDone;
  state_.ending = Ending{.exit_code = 0};
  records_.task(worker_, state_);
  EXPECT_EQ(take().back(), "info ended worker:1 ended with exit code 0");
}

TEST_F(LaunchRecordsTest, AStateIsToldOnce) {
  records_.state("training");
  records_.state("training");
  records_.state("ended");
  EXPECT_THAT(take(), ElementsAre("state training", "state ended"));
}

}  // namespace
}  // namespace disttf::roles
