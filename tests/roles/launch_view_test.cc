// A running launch as `status` and `top` show it.
#include "roles/launch/shell/launch_view.h"

#include <gmock/gmock.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "roles/launch/shell/child_output.h"
#include "roles/launch/shell/launch_telemetry.h"
#include "roles/launch/shell/manage.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

using ViewJson = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

const ViewJson kStatus = ViewJson::parse(R"({
  "state": "training", "pid": 4711, "since": "T1", "step": 800, "train_steps": 4000,
  "loss": 0.01184, "tasks": [
    {"task": "ps:0", "address": "127.0.0.1:40941", "state": "running", "pid": 8194, "restarts": 0,
     "since": "T2"},
    {"task": "worker:10", "address": "127.0.0.1:1", "state": "waiting", "pid": null,
     "restarts": 12, "since": "T3"}]})");

ViewJson run_at(double time) {
  ViewJson run = ViewJson::parse(R"({
    "now": {"images_per_second": 12345.6},
    "series": {"loss": {"steps": [1, 2, 3], "times": [1, 2, 3], "values": [3, 2, 1]},
               "test_accuracy": {"steps": [1], "times": [1], "values": [0.97]}},
    "frontier": {"step_seconds": 0.01,
                 "slowest": {"task": "worker:10", "stage": "backward", "slower": 0.41}},
    "tasks": [{"task": "worker:10", "step": 799, "doing": "waits for ps:0", "rss_bytes": 34100000,
               "wait_share": 0.25}]})");
  ViewJson& task = run["tasks"][0];
  task["time"] = time;
  task["cpu_seconds"] = time / 2;
  task["bytes_sent"] = time * 1000;
  task["bytes_received"] = time * 2000;
  return run;
}

TEST(LaunchView, StatusIsALineAndATable) {
  const LaunchView view = LaunchMeter().take(kStatus, ViewJson(), 0);
  EXPECT_EQ(run_line(view) + text_of(status_table(view)),
            "launch 4711: training, step 800 of 4000, loss 0.0118, since T1\n"
            "TASK       ADDRESS          STATE    PID   RESTARTS  SINCE\n"
            "ps:0       127.0.0.1:40941  running  8194  0         T2\n"
            "worker:10  127.0.0.1:1      waiting  -     12        T3\n");
}

TEST(LaunchView, StatusBeforeTheFirstStepHasNone) {
  const LaunchView view = LaunchMeter().take(
      ViewJson::parse(R"({"state": "training", "pid": 1, "since": "T", "step": null,
                      "train_steps": null, "loss": null, "tasks": []})"),
      ViewJson(), 0);
  EXPECT_EQ(run_line(view) + text_of(status_table(view)),
            "launch 1: training, since T\nTASK  ADDRESS  STATE  PID  RESTARTS  SINCE\n");
}

TEST(LaunchView, StatusHasMoreColumnsWhereTheLaunchKnowsThem) {
  const LaunchView view = LaunchMeter().take(kStatus, run_at(1), 0);
  EXPECT_EQ(text_of(status_table(view)),
            "TASK       ADDRESS          STATE    PID   RESTARTS  SINCE  STEP  WAIT %  RSS\n"
            "ps:0       127.0.0.1:40941  running  8194  0         T2     -     -       -\n"
            "worker:10  127.0.0.1:1      waiting  -     12        T3     799   25      34 MB\n");
}

TEST(LaunchView, NarrowStatusLeavesColumnsOutInOrder) {
  const LaunchView view = LaunchMeter().take(kStatus, run_at(1), 0);
  const auto titles = [&view](std::size_t width) {
    const std::string text = text_of(status_table(view), width);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(titles(76), "TASK       ADDRESS          STATE    PID   RESTARTS  STEP  WAIT %  RSS");
  EXPECT_EQ(titles(60), "TASK       STATE    PID   RESTARTS  STEP  WAIT %  RSS");
  EXPECT_EQ(titles(52), "TASK       STATE    RESTARTS  STEP  WAIT %  RSS");
  EXPECT_EQ(titles(40), "TASK       STATE    STEP  WAIT %  RSS");
  EXPECT_EQ(titles(35), "TASK       STATE    STEP  WAIT %");
  EXPECT_EQ(titles(30), "TASK       STATE    STEP");
  EXPECT_EQ(titles(20), "TASK       STATE");
}

TEST(LaunchView, TopHasARowForEachTask) {
  LaunchMeter meter;
  static_cast<void>(meter.take(kStatus, run_at(1), 0));
  const LaunchView view = meter.take(kStatus, run_at(2), 1);
  EXPECT_EQ(top_text(view, {.columns = 100, .rows = 24}),
            "launch 4711: training, step 800 of 4000 (20 %), 12346 images/s, 0:32 left\n"
            "loss 0.0118 #+_, test accuracy 0.9700\n"
            "worker:10 is 41 % slower: backward\n"
            "TASK       STATE    STEP  WAIT %  OUT/s   IN/s    RSS    CPU %  DOING\n"
            "ps:0       running  -     -       -       -       -      -      -\n"
            "worker:10  waiting  799   25      1.0 kB  2.0 kB  34 MB  50     waits for ps:0\n");
}

TEST(LaunchView, TopHasAsManyNumbersOfAProgramAsALineHasRoomFor) {
  ViewJson run = run_at(1);
  run["run"]["model"] = "program";
  run["series"]["norm"] = run["series"]["loss"];
  run["series"]["validation_f1"] = run["series"]["test_accuracy"];
  const LaunchView view = LaunchMeter().take(kStatus, run, 1);
  EXPECT_THAT(
      top_text(view, {.columns = 100, .rows = 24}),
      testing::AllOf(HasSubstr("12346 rows/s"), HasSubstr("\nnorm 1, validation_f1 0.97\n")));
  EXPECT_THAT(top_text(view, {.columns = 20, .rows = 24}),
              testing::AllOf(HasSubstr("\nnorm 1\n"), Not(HasSubstr("validation_f1"))));
  EXPECT_EQ(ViewJson::parse(launch_json(view)).at("numbers").at("norm"), 1.0);
  EXPECT_THAT(launch_json(LaunchMeter().take(kStatus, run_at(1), 1)), Not(HasSubstr("numbers")));
}

TEST(LaunchView, NarrowTopLeavesColumnsOutInOrder) {
  LaunchMeter meter;
  static_cast<void>(meter.take(kStatus, run_at(1), 0));
  const LaunchView view = meter.take(kStatus, run_at(2), 1);
  const std::string text = top_text(view, {.columns = 40, .rows = 24});
  EXPECT_EQ(text,
            "launch 4711: training\n"
            "step 800 of 4000 (20 %), 12346 images/s\n"
            "0:32 left\n"
            "loss 0.0118 #+_, test accuracy 0.9700\n"
            "worker:10 is 41 % slower: backward\n"
            "TASK       STATE    STEP  WAIT %\n"
            "ps:0       running  -     -\n"
            "worker:10  waiting  799   25\n");
}

TEST(LaunchView, ColoursAreForThoseWhoWantThem) {
  const LaunchView view = LaunchMeter().take(kStatus, run_at(1), 0);
  EXPECT_THAT(top_text(view, {.colour = true}), HasSubstr("\x1b[33mworker:10 is"));
  EXPECT_THAT(top_text(view, {}), Not(HasSubstr("\x1b")));
}

TEST(LaunchView, RowsThatDoNotFitAreCounted) {
  ViewJson status = kStatus;
  for (int each = 0; each < 20; ++each) {
    status["tasks"].push_back(kStatus["tasks"][0]);
  }
  const LaunchView view = LaunchMeter().take(status, ViewJson(), 0);
  const std::string text = status_screen(view, {.columns = 80, .rows = 10});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_THAT(text, testing::EndsWith("\n... and 15 more tasks\n"));
  EXPECT_THAT(status_screen(view, {.columns = 80, .rows = 24}), Not(HasSubstr("more tasks")));
}

TEST(LaunchView, RatesBeginAnewWithAnotherProcess) {
  LaunchMeter meter;
  static_cast<void>(meter.take(kStatus, run_at(100), 0));
  const LaunchView restarted = meter.take(kStatus, run_at(1), 1);
  EXPECT_FALSE(restarted.tasks[1].sent);
  EXPECT_EQ(meter.take(kStatus, run_at(2), 2).tasks[1].sent, 1000);
}

TEST(LaunchView, TimeLeftIsMeasuredWhereItIsNotTold) {
  LaunchMeter meter;
  ViewJson status = kStatus;
  EXPECT_FALSE(meter.take(status, ViewJson(), 10).seconds_left);
  status["step"] = 1000;
  EXPECT_EQ(meter.take(status, ViewJson(), 12).seconds_left, 30);
}

TEST(LaunchView, IsOneLineOfJson) {
  const std::string line = launch_json(LaunchMeter().take(kStatus, run_at(1), 0));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const ViewJson json = ViewJson::parse(line);
  EXPECT_EQ(json.at("step"), 800);
  EXPECT_EQ(json.at("slowest").at("slower"), 0.41);
  EXPECT_EQ(json.at("tasks").at(0).at("wait"), nullptr);
  EXPECT_EQ(json.at("tasks").at(1).at("wait"), 0.25);
  EXPECT_EQ(json.at("tasks").at(1).at("doing"), "waits for ps:0");
}

TEST(LaunchView, TheEndSaysWhatBecameOfIt) {
  LaunchView view = LaunchMeter().take(kStatus, ViewJson(), 0);
  EXPECT_EQ(end_line(view), "launch 4711 has ended; step 800 of 4000 was the last one seen\n");
  view.result = "MNIST accuracy: 0.9771";
  EXPECT_EQ(end_line(view), "launch 4711 has ended: MNIST accuracy: 0.9771\n");
}

TEST(LaunchView, AnythingElseIsASentence) {
  for (const char* wrong : {"null", "[]", "{}", R"({"message": 1})", R"({"tasks": 1})"}) {
    EXPECT_THROW(static_cast<void>(LaunchMeter().take(ViewJson::parse(wrong), ViewJson(), 0)),
                 Failure);
  }
  for (const char* odd : {"[]", "{}", R"({"tasks": {}})", R"({"tasks": [1, {"task": 1}]})",
                          R"({"series": {"loss": 1}, "frontier": [], "now": "x"})"}) {
    EXPECT_NO_THROW(static_cast<void>(LaunchMeter().take(kStatus, ViewJson::parse(odd), 0))) << odd;
  }
}

// The records of a launch about its tasks: each change once, and as a sentence.

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

// The newest lines of a task: bounded, whole, and handed on.

TEST(LogTail, KeepsWhatCame) {
  LogTail log;
  log.append("first");
  log.append("");
  log.append("third");
  EXPECT_EQ(log.text(), "first\n\nthird\n");
}

TEST(LogTail, IsBoundedAndKeepsTheNewestWholeLines) {
  LogTail log;
  for (int each = 0; each < 100'000; ++each) {
    log.append("line " + std::to_string(each));
    ASSERT_LE(log.text().size(), LogTail::kMaxBytes);
  }
  EXPECT_GT(log.text().size(), LogTail::kMaxBytes / 2);
  EXPECT_TRUE(log.text().starts_with("line ")) << "and not in the middle of one";
  EXPECT_TRUE(log.text().ends_with("\nline 99999\n"));
}

TEST(LogTail, IsBoundedWhateverALineIs) {
  LogTail log;
  for (int each = 0; each < 10; ++each) {
    log.append(std::string(LogTail::kMaxBytes, 'a'));
    ASSERT_LE(log.text().size(), LogTail::kMaxBytes);
  }
}

TEST(LogTail, HandsOnNewLinesAsLongAsAReaderIsThere) {
  LogTail log;
  log.append("before");
  auto reader = std::make_shared<net::HttpLineStream>();
  log.follow(reader);
  log.append("after");
  EXPECT_EQ(reader->take(), "after\n");
  const std::weak_ptr<net::HttpLineStream> gone = reader;
  reader.reset();
  EXPECT_TRUE(gone.expired()) << "the log does not hold it";
  log.append("nobody");
}

// The answers of a control address as people read them.

TEST(ManageText, EndpointsAreOneRowAJob) {
  EXPECT_EQ(text_of(ManageVerb::kEndpoints,
                    R"({"ps": ["a:1"], "worker": ["b:2", "c:3"], "control": ["/x.sock"]})"),
            "JOB      ADDRESSES\nps       a:1\nworker   b:2,c:3\ncontrol  /x.sock\n");
}

TEST(ManageText, PodsAreOneALine) {
  EXPECT_EQ(text_of(ManageVerb::kPodsList, R"(["ps:0", "worker:0"])"), "ps:0\nworker:0\n");
}

TEST(ManageText, ChangesAnswerWithTheirMessage) {
  for (const ManageVerb verb :
       {ManageVerb::kPodsRestart, ManageVerb::kPodsReplace, ManageVerb::kUpdate}) {
    EXPECT_EQ(text_of(verb, R"({"task": "ps:0", "message": "it is so"})"), "it is so\n");
  }
}

TEST(ManageText, APageIsItsLink) {
  EXPECT_EQ(text_of(ManageVerb::kPage, R"({"url": "http://127.0.0.1:1/?token=2"})"),
            "http://127.0.0.1:1/?token=2\n");
  EXPECT_THROW(static_cast<void>(text_of(ManageVerb::kPage, R"({"message": "no"})")), Failure);
}

TEST(ManageText, AnythingElseIsASentence) {
  for (const char* wrong : {"", "[]", "{}", R"({"message": 1})", R"({"tasks": 1})"}) {
    for (const ManageVerb verb : {ManageVerb::kPodsRestart, ManageVerb::kUpdate}) {
      EXPECT_THROW(static_cast<void>(text_of(verb, wrong)), Failure) << wrong;
    }
  }
}

}  // namespace
}  // namespace disttf::roles
