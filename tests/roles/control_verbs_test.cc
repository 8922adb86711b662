// What a control address answers, with a job that only records the requests.
#include "roles/launch/shell/control_verbs.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "roles/launch/shell/job_update.h"
#include "roles/launch/shell/managed_job.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

class FakeJob : public ManagedJob {
 public:
  std::vector<std::string> told;
  std::string secret_file;

  [[nodiscard]] JobStatus status() const override {
    const auto at = std::chrono::system_clock::time_point(std::chrono::seconds(1'000'000'000));
    return {.state = "training",
            .pid = 4711,
            .since = at,
            .progress = Progress{.step = 12, .train_steps = 100, .loss = 0.5, .images = 1},
            .tasks = {{.id = {.job = net::Job::kPs, .index = 0},
                       .address = {.host = "127.0.0.1", .port = 4000},
                       .pid = 4712,
                       .since = at},
                      {.id = {.job = net::Job::kWorker, .index = 0},
                       .address = {.host = "127.0.0.1", .port = 4001},
                       .state = TaskState::kWaiting,
                       .restarts = 3,
                       .since = at}},
            .socket = "/run/x.sock",
            .url = "",
            .secret_file = secret_file};
  }
  [[nodiscard]] std::string log(const net::TaskId& id) const override {
    if (id.index > 0) throw UnknownTask("there is no task " + task_name(id));
    return "a line\n";
  }
  [[nodiscard]] std::shared_ptr<net::HttpLineStream> follow(const net::TaskId& id) override {
    told.push_back("follow " + task_name(id));
    return std::make_shared<net::HttpLineStream>();
  }
  std::string restart(const net::TaskId& id) override {
    if (id.job == net::Job::kPs) throw JobRefusal("not now");
    return tell("restart " + task_name(id));
  }
  std::string replace(const net::TaskId& id) override { return tell("replace " + task_name(id)); }
  std::string update(const LaunchUpdate& wanted) override {
    if (wanted.workers == 0U) throw std::invalid_argument("--workers: 0 is none");
    return tell("update " + (wanted.workers ? std::to_string(*wanted.workers) : "-") + " " +
                wanted.options.value_or("-"));
  }
  std::string save() override { return tell("save"); }
  std::string trace(std::uint32_t steps) override { return tell("trace " + std::to_string(steps)); }
  std::string stop() override { return tell("stop"); }
  std::string make_page_link() override { return "http://127.0.0.1:1/?token=" + tell("page"); }

 private:
  std::string tell(const std::string& what) {
    told.push_back(what);
    return "done";
  }
};

class ControlVerbs : public testing::Test {
 protected:
  net::HttpReply ask(const std::string& method, const std::string& path,
                     const std::string& body = {}, const std::string& query = {}) {
    return answer_verb(
        job_, {.method = method, .path = path, .query = query, .authorization = {}, .body = body},
        caller_);
  }
  // "404 the sentence"
  std::string refusal(const std::string& method, const std::string& path,
                      const std::string& body = {}) {
    const net::HttpReply reply = ask(method, path, body);
    const Json json = Json::parse(reply.body);
    return std::to_string(reply.status) + " " + json.at("error").get<std::string>();
  }
  FakeJob job_;
  Caller caller_ = Caller::kControl;
};

class PageVerbs : public ControlVerbs {
 protected:
  PageVerbs() { caller_ = Caller::kPage; }
};

TEST_F(PageVerbs, MayDoWhatThePageHasButtonsFor) {
  for (const char* path :
       {"/v1/pods/worker:0/restart", "/v1/pods/worker:0/replace", "/v1/save", "/v1/stop"}) {
    EXPECT_EQ(ask("POST", path).status, 200) << path;
  }
  EXPECT_EQ(ask("POST", "/v1/trace", R"({"steps": 50})").status, 200);
  EXPECT_EQ(ask("POST", "/v1/update", R"({"workers": 2})").status, 200) << "there is one worker";
  EXPECT_EQ(job_.told.back(), "update 2 -");
}

TEST_F(PageVerbs, MayNotChangeOptionsOrAnyNumberOfWorkers) {
  EXPECT_EQ(
      refusal("POST", "/v1/update", R"({"options": "{}"})"),
      "403 update: options are not allowed from the page, which may ask for {\"workers\": 2}; "
      "use `disttf update`");
  EXPECT_THAT(refusal("POST", "/v1/update", R"({"workers": 2, "options": "{}"})"),
              HasSubstr("403 update: options are not allowed"));
  EXPECT_EQ(refusal("POST", "/v1/update", R"({"workers": 900})"),
            "403 update: workers is 900; the page may ask for one worker more, which is 2");
  EXPECT_THAT(job_.told, IsEmpty());
}

TEST_F(PageVerbs, MayNotReadLogsOrMakeLinks) {
  for (const char* path : {"/v1/status", "/v1/endpoints", "/v1/pods", "/v1/logs/worker:0"}) {
    EXPECT_THAT(refusal("GET", path), HasSubstr("403 ")) << path;
  }
  EXPECT_THAT(refusal("POST", "/v1/page"),
              HasSubstr("403 \"/v1/page\" is not allowed from the page"));
  EXPECT_THAT(job_.told, IsEmpty());
}

TEST_F(ControlVerbs, StatusTellsOfTheRunAndItsTasks) {
  const net::HttpReply reply = ask("GET", "/v1/status");
  EXPECT_EQ(reply.status, 200);
  const Json json = Json::parse(reply.body);
  EXPECT_EQ(json.at("state"), "training");
  EXPECT_EQ(json.at("step"), 12);
  EXPECT_EQ(json.at("train_steps"), 100);
  EXPECT_EQ(json.at("loss"), 0.5);
  EXPECT_EQ(json.at("since"), "2001-09-09T01:46:40Z");
  EXPECT_EQ(json.at("tasks").at(0),
            Json::parse(R"({"task": "ps:0", "address": "127.0.0.1:4000", "state": "running",
                            "pid": 4712, "restarts": 0, "since": "2001-09-09T01:46:40Z"})"));
  EXPECT_EQ(json.at("tasks").at(1).at("state"), "waiting");
  EXPECT_EQ(json.at("tasks").at(1).at("pid"), nullptr);
  EXPECT_EQ(json.at("tasks").at(1).at("restarts"), 3);
}

TEST_F(ControlVerbs, EndpointsAreListsByJob) {
  EXPECT_EQ(Json::parse(ask("GET", "/v1/endpoints").body),
            Json::parse(R"({"ps": ["127.0.0.1:4000"], "worker": ["127.0.0.1:4001"],
                            "control": ["/run/x.sock"]})"));
}

TEST_F(ControlVerbs, EndpointsSayByWhatOneJoins) {
  job_.secret_file = "/run/x.secret";
  EXPECT_EQ(Json::parse(ask("GET", "/v1/endpoints").body).at("secret_file"),
            Json::parse(R"(["/run/x.secret"])"));
}

TEST_F(ControlVerbs, PodsAreNames) {
  EXPECT_EQ(Json::parse(ask("GET", "/v1/pods").body), Json::parse(R"(["ps:0", "worker:0"])"));
}

TEST_F(ControlVerbs, LogsAreText) {
  const net::HttpReply reply = ask("GET", "/v1/logs/worker-0");
  EXPECT_EQ(reply.body, "a line\n");
  EXPECT_THAT(reply.content_type, HasSubstr("text/plain"));
  EXPECT_EQ(reply.lines, nullptr);
  EXPECT_NE(ask("GET", "/v1/logs/worker:0", "", "follow=true").lines, nullptr);
  EXPECT_THAT(job_.told, ElementsAre("follow worker:0"));
  EXPECT_EQ(ask("GET", "/v1/logs/worker:0", "", "follow=maybe").status, 400);
}

TEST_F(ControlVerbs, PodsAreRestartedAndReplaced) {
  EXPECT_EQ(Json::parse(ask("POST", "/v1/pods/worker-2/restart").body),
            Json::parse(R"({"task": "worker:2", "message": "done"})"));
  EXPECT_EQ(ask("POST", "/v1/pods/chief:0/replace").status, 200);
  EXPECT_THAT(job_.told, ElementsAre("restart worker:2", "replace chief:0"));
}

TEST_F(ControlVerbs, AnUpdateSaysWhatItWants) {
  EXPECT_EQ(ask("POST", "/v1/update", R"({"workers": 4})").status, 200);
  EXPECT_EQ(ask("POST", "/v1/update", R"({"options": "{}", "workers": 5})").status, 200);
  EXPECT_THAT(job_.told, ElementsAre("update 4 -", "update 5 {}"));
}

TEST_F(ControlVerbs, ARunIsSavedAndStopped) {
  EXPECT_EQ(Json::parse(ask("POST", "/v1/save").body), Json::parse(R"({"message": "done"})"));
  EXPECT_EQ(Json::parse(ask("POST", "/v1/stop").body), Json::parse(R"({"message": "done"})"));
  EXPECT_THAT(job_.told, ElementsAre("save", "stop"));
}

TEST_F(ControlVerbs, APageHasALink) {
  EXPECT_EQ(Json::parse(ask("POST", "/v1/page").body),
            Json::parse(R"({"url": "http://127.0.0.1:1/?token=done"})"));
}

TEST_F(ControlVerbs, WhatIsNotThereIs404) {
  for (const char* path : {"/", "//", "/v1", "/v1/", "/v2/status", "/v1/status/", "/v1/pods/ps:0",
                           "/v1/pods/ps:0/kill", "/v1/logs", "/v1/logs/a/b", "/v1/update/x"}) {
    EXPECT_THAT(refusal("GET", path),
                HasSubstr("404 \"" + std::string(path) + "\" does not exist"));
  }
  EXPECT_EQ(refusal("GET", "/v1/logs/worker:7"), "404 there is no task worker:7");
}

TEST_F(ControlVerbs, AnotherMethodIs405) {
  EXPECT_EQ(refusal("POST", "/v1/status"), "405 POST \"/v1/status\" is not allowed; it takes GET");
  EXPECT_EQ(refusal("GET", "/v1/update"), "405 GET \"/v1/update\" is not allowed; it takes POST");
  for (const char* path : {"/v1/pods/ps:0/restart", "/v1/save", "/v1/stop", "/v1/page"}) {
    EXPECT_EQ(refusal("GET", path).substr(0, 3), "405") << path;
    EXPECT_EQ(refusal("DELETE", path).substr(0, 3), "405") << path;
  }
  EXPECT_THAT(job_.told, IsEmpty());
}

TEST_F(ControlVerbs, WhatCannotBeDoneNowIs409) {
  EXPECT_EQ(refusal("POST", "/v1/pods/ps:0/restart"), "409 not now");
}

TEST_F(ControlVerbs, ABodyThatIsNoneIs400) {
  const std::string deep(1000, '[');
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), deep,
        std::string(R"({"workers": -1})"), std::string(R"({"workers": "4"})"),
        std::string(R"({"options": {"service": {}}})"), std::string(R"({"ps": 1})"),
        std::string("{\"a\xff\": 1}")}) {
    EXPECT_EQ(refusal("POST", "/v1/update", body).substr(0, 11), "400 update:") << body;
  }
  EXPECT_EQ(refusal("POST", "/v1/update", R"({"workers": 0})"), "400 --workers: 0 is none");
  EXPECT_THAT(job_.told, IsEmpty());
}

TEST_F(ControlVerbs, TasksHaveTwoSpellings) {
  EXPECT_EQ(net::task_from_name("worker:12"), (net::TaskId{.job = net::Job::kWorker, .index = 12}));
  EXPECT_EQ(net::task_from_name("ps-0"), (net::TaskId{.job = net::Job::kPs, .index = 0}));
  for (const char* wrong : {"", "worker", "worker:", "worker:-1", "worker:1x", "1", "maker:1",
                            "worker 1", "worker:99999999999999999999"}) {
    EXPECT_EQ(refusal("POST", "/v1/pods/" + std::string(wrong) + "/restart").substr(0, 3), "400")
        << wrong;
  }
}

// What an update changes, and how.

LaunchOptions launched(std::vector<std::string> arguments = {"--train_dir=/d"}) {
  LaunchOptions options;
  options.task_arguments = std::move(arguments);
  return options;
}

std::string refusal(const LaunchOptions& now, const LaunchOptions& wanted) {
  return sentence_of<JobRefusal>([&] { return plan_update(now, wanted); }, "");
}

TEST(UpdatePlan, OfTheSameIsEmpty) {
  const UpdatePlan plan = plan_update(launched(), launched());
  EXPECT_THAT(plan.changes, IsEmpty());
  EXPECT_FALSE(plan.rolls || plan.restarts || plan.new_workers != 0);
}

TEST(UpdatePlan, LetsWorkersJoinWhereTheyMay) {
  const LaunchOptions now = launched({"--max_workers=4"});
  LaunchOptions wanted = now;
  wanted.workers = 4;
  const UpdatePlan plan = plan_update(now, wanted);
  EXPECT_EQ(plan.new_workers, 2U);
  EXPECT_FALSE(plan.restarts);
  EXPECT_THAT(plan.changes, ElementsAre("--workers: 2 -> 4"));
}

TEST(UpdatePlan, OtherwiseStartsAgainWithMoreWorkers) {
  for (const LaunchOptions& now : {launched(), launched({"--max_workers=3", "--train_dir=/d"})}) {
    LaunchOptions wanted = now;
    wanted.workers = 4;
    const UpdatePlan plan = plan_update(now, wanted);
    EXPECT_TRUE(plan.restarts);
    EXPECT_EQ(plan.new_workers, 0U);
  }
}

TEST(UpdatePlan, NeverShrinks) {
  LaunchOptions fewer = launched();
  fewer.workers = 1;
  EXPECT_EQ(refusal(launched(), fewer),
            "--workers: 1 is fewer than the 2 that run; counts cannot shrink");
  LaunchOptions more = launched();
  more.ps = 2;
  EXPECT_EQ(refusal(more, launched()),
            "--ps: 1 is fewer than the 2 that run; counts cannot shrink");
}

TEST(UpdatePlan, RollsWhatIsOfOneTask) {
  LaunchOptions wanted = launched({"--train_dir=/d", "--log_every=5"});
  wanted.trainer_limits.cpus = 1.5;
  wanted.ps_limits.memory_mib = 100;
  const UpdatePlan plan = plan_update(launched({"--train_dir=/d", "--save_secs=3"}), wanted);
  EXPECT_TRUE(plan.rolls);
  EXPECT_FALSE(plan.restarts);
  EXPECT_THAT(plan.changes, ElementsAre("--log_every: default -> 5", "--save_secs: 3 -> default",
                                        "--ps_memory: unlimited -> 100", "--cpus: all -> 1.5"));
}

TEST(UpdatePlan, StartsAgainForTheConfiguration) {
  const UpdatePlan plan =
      plan_update(launched(), launched({"--train_dir=/d", "--batch_size=50", "--log_every=5"}));
  EXPECT_TRUE(plan.restarts);
  EXPECT_FALSE(plan.rolls) << "all tasks get the new settings anyway";
}

TEST(UpdatePlan, NeedsACheckpointToStartAgain) {
  EXPECT_EQ(refusal(launched({}), launched({"--batch_size=50"})),
            "this needs all tasks to start again from a checkpoint, and the run has no --train_dir "
            "(--batch_size: default -> 50)");
  LaunchOptions more = launched({});
  more.workers = 3;
  EXPECT_THAT(refusal(launched({}), more), HasSubstr("no --train_dir (--workers: 2 -> 3)"));
}

TEST(UpdatePlan, RefusesWhatACheckpointCannotBecome) {
  EXPECT_EQ(refusal(launched(), launched({"--train_dir=/d", "--model=softmax"})),
            "--model: cannot become softmax in this run, which has default: the checkpoint holds "
            "another model");
  EXPECT_THAT(refusal(launched(), launched({"--train_dir=/e"})), HasSubstr("--train_dir: cannot"));
  EXPECT_THAT(refusal(launched(), launched({"--train_dir=/d", "--hidden_units=7"})),
              HasSubstr("--hidden_units: cannot"));
}

// The launch's user decides at the start what the tasks may reach, and no update changes that.
TEST(UpdatePlan, RefusesFilesAddressesDataSecretsAndConfinement) {
  for (const char* argument :
       {"--confine=false", "--metrics_file=/h/.profile", "--log_dir=/e", "--data=/e.csv",
        "--data_dir=/e", "--data_url=http://e", "--ca_file=/e", "--dataset=digits",
        "--secret_file=/e", "--insecure=true", "--task_cert=/e", "--on_finish=e",
        "--debug_attempts=exec:/bin/true", "--transport=tcp", "--listen_fd=3"}) {
    const std::string name = std::string(argument).substr(0, std::string(argument).find('='));
    EXPECT_THAT(refusal(launched(), launched({"--train_dir=/d", argument})),
                HasSubstr(name + ": cannot become "))
        << argument;
    EXPECT_THAT(refusal(launched({"--train_dir=/d", argument}), launched()),
                HasSubstr(name + ": cannot become default"))
        << argument;
  }
}

TEST(UpdatePlan, RefusesOtherMetrics) {
  LaunchOptions wanted = launched();
  wanted.metrics.textfile = "/h/.profile";
  EXPECT_THAT(refusal(launched(), wanted), HasSubstr("--metrics_textfile"));
  wanted = launched();
  wanted.metrics.port = 1;
  EXPECT_THAT(refusal(launched(), wanted), HasSubstr("--metrics_port"));
}

}  // namespace
}  // namespace disttf::roles
