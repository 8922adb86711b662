// render dcos: converts options of DC/OS' TensorFlow package to a Marathon group.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "main/render/dcos_options.h"
#include "tests/main/command_lines.h"
#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kDomain = "marathon.autoip.dcos.thisdcos.directory";

class RenderDcos : public testing::Test {
 protected:
  // Returns the arguments that name a file with these options.
  std::string options(const std::string& text) {
    return "--options " + scratch_.write("options.json", text) + " ";
  }
  json group(const std::string& text, const std::string& line = "") {
    return json::parse(rendered("dcos " + options(text) + line));
  }
  std::string refused(const std::string& text) { return render_refusal("dcos " + options(text)); }

 private:
  ScratchDirectory scratch_;
};

// In the form of the package's own samples.
constexpr const char* kMnist = R"({
  "service": {
    "name": "mnist",
    "job_url": "https://downloads.example/mnist.zip",
    "job_path": "mnist",
    "job_name": "mnist",
    "job_context": "{\"train_steps\": 50, \"hidden_units\": [32, 16], \"sync_replicas\": false, \"dataset\": \"digits\"}",
    "shared_filesystem": "/mnt/shared/mnist",
    "use_tensorboard": true
  },
  "worker": {"count": 4, "port": 2300, "cpus": 2, "mem": 2048,
             "placement_constraint": "[[\"hostname\", \"LIKE\", \"10.0.0.159|10.0.1.202\"]]"},
  "parameter_server": {"count": 2, "port": 2400, "placement_constraint": "hostname:UNIQUE"},
  "gpu_worker": {"count": 0}
})";

TEST_F(RenderDcos, GivesTheClusterOfTheOptions) {
  expect_one_cluster(marathon_tasks(group(kMnist), kDomain), {.ps = 2, .workers = 4});
}

TEST_F(RenderDcos, WithoutOptionsThePackagesDefaults) {
  const auto tasks = marathon_tasks(group("{}", "--name m"), kDomain);
  expect_one_cluster(tasks, {.ps = 2, .workers = 3});
  EXPECT_EQ(tasks.front().address, std::string("ps-0-m.") + kDomain + ":2223");
  EXPECT_EQ(tasks.back().address, std::string("worker-2-m.") + kDomain + ":2222");
}

TEST_F(RenderDcos, FlagsAloneWillDo) {
  const json all = json::parse(rendered("dcos --workers 1 --chief"));
  expect_one_cluster(marathon_tasks(all, kDomain), {.workers = 1, .chief = true});
}

TEST_F(RenderDcos, TheJobsContextIsTrainingFlags) {
  for (const Started& task : marathon_tasks(group(kMnist), kDomain)) {
    const roles::TrainerOptions task_options = options_of(task);
    EXPECT_EQ(task_options.config.train_steps, 50U);
    EXPECT_THAT(task_options.config.model.hidden, ElementsAre(32, 16));
    EXPECT_FALSE(task_options.config.sync_replicas);
    EXPECT_EQ(task_options.checkpoint.train_dir, "/mnt/shared/mnist");
    EXPECT_EQ(task_options.task.on_finish, roles::OnFinish::kIdle);
  }
}

TEST_F(RenderDcos, ResourcesPortsAndPlacementAreTheOptions) {
  const json all = group(kMnist);
  const json& ps = all["apps"][0];
  const json& worker = all["apps"][5];
  EXPECT_EQ(ps["constraints"], json::parse(R"([["hostname", "UNIQUE"]])"));
  EXPECT_EQ(worker["constraints"],
            json::parse(R"([["hostname", "LIKE", "10.0.0.159|10.0.1.202"]])"));
  EXPECT_EQ(ps["cpus"], 1);
  EXPECT_EQ(ps["mem"], 4096);
  EXPECT_EQ(worker["cpus"], 2);
  EXPECT_EQ(worker["mem"], 2048);
  EXPECT_EQ(ps["portDefinitions"][0]["port"], 2400);
  EXPECT_EQ(worker["portDefinitions"][0]["port"], 2300);
  EXPECT_EQ(worker["user"], "nobody");
  EXPECT_EQ(worker["container"]["volumes"][0]["hostPath"], "/mnt/shared/mnist");
}

TEST_F(RenderDcos, UseTensorboardIsAnAppOfTheSharedFileSystem) {
  const json all = group(kMnist);
  const json& app = all["apps"].back();
  EXPECT_EQ(app["id"], "/mnist/tensorboard");
  EXPECT_EQ(app["cmd"], "tensorboard --bind_all --port 6006 --logdir /mnt/shared/mnist");
  EXPECT_EQ(app["mem"], 4096);
  EXPECT_EQ(app["container"]["volumes"][0]["hostPath"], "/mnt/shared/mnist");
  EXPECT_EQ(group(kMnist, "--tensorboard=false")["apps"].back()["id"], "/mnist/worker-3");
  EXPECT_EQ(refused(R"({"service": {"name": "m", "use_tensorboard": true}})"),
            "--tensorboard: needs --log_dir or --train_dir in a directory of --volumes");
}

// The package's description of that option says so.
TEST_F(RenderDcos, TheSharedFileSystemMayBeAStore) {
  for (const std::string url : {"gs://your/directory", "hdfs://default/your/directory"}) {
    const json all = group(R"({"service": {"name": "m", "shared_filesystem": ")" + url + "\"}}");
    for (const Started& task : marathon_tasks(all, kDomain)) {
      EXPECT_EQ(options_of(task).checkpoint.train_dir, url);
    }
    for (const json& app : all["apps"]) {
      EXPECT_EQ(app["container"].value("volumes", json::array()), json::array()) << app;
    }
  }
}

TEST_F(RenderDcos, AVirtualNetworkTakesNoPortOfTheMachine) {
  const json all = group(R"({"service": {"virtual_network_enabled": true}})", "--name m");
  const json& app = all["apps"][0];
  EXPECT_EQ(app["networks"], json::parse(R"([{"mode": "container", "name": "dcos"}])"));
  EXPECT_FALSE(app.contains("portDefinitions"));
  expect_one_cluster(marathon_tasks(all, kDomain), {.ps = 2, .workers = 3});
}

TEST_F(RenderDcos, TheCommandLineWins) {
  const json all = group(kMnist, "--workers 1 --train_steps 7 --cpus 3");
  const auto tasks = marathon_tasks(all, kDomain);
  expect_one_cluster(tasks, {.ps = 2, .workers = 1});
  EXPECT_EQ(options_of(tasks[0]).config.train_steps, 7U);
  EXPECT_EQ(all["apps"][2]["cpus"], 3);
}

TEST_F(RenderDcos, WhatOnlyPythonNeedsIsLeftAsideWithAWarning) {
  const Invocation invocation = parse("render dcos --insecure " + options(kMnist));
  EXPECT_THAT(invocation.warnings,
              ElementsAre("--options: ignored, because disttf has its own program, image and data: "
                          "service.job_url, service.job_path, service.job_name"));
  EXPECT_TRUE(parse("render dcos --insecure --name m " + options("{}")).warnings.empty());
}

TEST_F(RenderDcos, RefusesWhatThePackageWouldRefuse) {
  const auto expect = [this](const std::string& text, const std::string& sentence) {
    EXPECT_EQ(refused(text), "--options: " + sentence) << text;
  };
  expect(R"({"worker": {"count": "3"}})", "worker.count is \"3\"; expected a whole number");
  expect(R"({"worker": {"count": 2.5}})", "worker.count is 2.5; expected a whole number");
  expect(R"({"worker": {"cpus": true}})", "worker.cpus is true; expected a number");
  expect(R"({"worker": 3})", "worker is 3; expected a map of options");
  expect(R"({"worker": {"cpu": 3}})", "\"worker.cpu\" is not an option of the TensorFlow package");
  expect(R"({"workers": {}})", "\"workers\" is not an option of the TensorFlow package");
  expect(R"({"service": {"name": {"a": 1}}})", "service.name is a map; expected text");
  expect(
      R"({"service": {"log_level": "LOUD"}})",
      "service.log_level is \"LOUD\"; expected one of OFF FATAL ERROR WARN INFO DEBUG TRACE ALL");
  expect(R"({"service": {"log_level": "OFF FATAL"}})",
         "service.log_level is \"OFF FATAL\"; expected one of OFF FATAL ERROR WARN INFO DEBUG "
         "TRACE ALL");
  expect(R"({"worker": {"count": 0}})",
         "worker.count is 0; expected a whole number from 1 to 1000");
  expect(R"({"worker": {"count": -1}})",
         "worker.count is -1; expected a whole number from 1 to 1000");
  for (const char* section : {"worker", "parameter_server", "tensorboard"}) {
    for (const char* cpus : {"-1", "0.0", "1024.5", "1e+300"}) {
      expect(fmt::format(R"({{"service": {{"use_tensorboard": true, "shared_filesystem": "/runs"}},
                              "{}": {{"cpus": {}}}}})",
                         section, cpus),
             fmt::format("{}.cpus is {}; expected a number from 0.01 to 1024", section, cpus));
    }
  }
  EXPECT_THAT(refused(R"({"worker": {"placement_constraint": "hostname:UNIQUE CLUSTER:a"}})"),
              StartsWith("--placement: \"hostname:UNIQUE CLUSTER:a\" is not FIELD=VALUE or"));
  expect(R"({"worker": {"port": 65536}})",
         "worker.port is 65536; expected a whole number from 1 to 65535");
  expect("[]", "the file is a list; expected a map of options");
}

TEST_F(RenderDcos, RefusesWhatDisttfHasNot) {
  const auto expect = [this](const std::string& text, const std::string& sentence) {
    EXPECT_EQ(refused(text), "--options: " + sentence) << text;
  };
  expect(R"({"gpu_worker": {"count": 1}})",
         "gpu_worker.count is 1; expected 0: disttf computes on CPUs; give these tasks to "
         "worker.count, or train your own program (disttf render dcos --program)");
  expect(R"({"service": {"shared_filesystem": "mnist"}})",
         "service.shared_filesystem is \"mnist\"; expected a path, which begins with /, of a "
         "directory that all machines share, or a URL such as gs://bucket/prefix or "
         "hdfs://namenode/path");
  expect(R"({"service": {"security": {"kerberos": {"enabled": true}}}})",
         "service.security.kerberos.enabled is true; expected false: disttf does not support "
         "Kerberos");
  expect(R"({"service": {"job_context": "[1]"}})",
         "service.job_context is \"[1]\"; expected a map of training flags, as JSON");
  expect(R"({"service": {"job_context": "{"}})", "service.job_context is not valid JSON: \"{\"");
  expect(R"({"service": {"job_context": "{\"steps\": 3}"}})",
         "service.job_context has the key \"steps\"; expected a training flag, such as batch_size");
  expect(R"({"service": {"job_context": "{\"workers\": 3}"}})",
         "service.job_context has the key \"workers\"; expected a training flag, such as "
         "batch_size");
  expect(
      R"({"service": {"job_context": "{\"train_steps\": {}}"}})",
      "service.job_context has a map for \"train_steps\"; expected the value of a training flag");
  EXPECT_THAT(refused(R"({"service": {"job_context": "{\"train_steps\": \"many\"}"}})"),
              StartsWith("--options: service.job_context: --train_steps: \"many\" is not"));
  expect(R"({"worker": {"placement_constraint": "[[1]]"}})",
         "worker.placement_constraint is \"[[1]]\"; expected lists of texts, as in [[\"hostname\", "
         "\"UNIQUE\"]]");
}

TEST_F(RenderDcos, AHostileFileIsOneSentence) {
  for (const std::string& text :
       {std::string("{"), std::string("\0", 1), std::string("\xff\xfe"), std::string("nul"),
        std::string("1e999"), std::string(100'000, '['), std::string("\"\x1b[31m\""),
        R"({"a": )" + std::string(50'000, '[') + std::string(50'000, ']') + "}",
        std::string(R"({"service": {"name": "\u0000"}})"),
        std::string(R"({"service": {"name": "A B"}})"),
        std::string(R"({"worker": {"count": 99999999999999999999}})"),
        std::string(R"({"worker": {"cpus": -1}})"), std::string(R"({"worker": {"cpus": 1e300}})"),
        std::string(R"({"worker": {"placement_constraint": "x"}})"), std::string(2'000'000, ' ')}) {
    const std::string sentence = refused(text);
    EXPECT_NE(sentence, "(accepted)") << text.substr(0, 80);
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    EXPECT_LT(sentence.size(), 400U) << sentence.substr(0, 400);
    EXPECT_EQ(sentence.find('\x1b'), std::string::npos);
  }
  EXPECT_THAT(render_refusal("dcos --options /nowhere/x.json"),
              StartsWith("--options: \"/nowhere/x.json\" is not a file that can be read"));
  EXPECT_THAT(render_refusal("dcos --options /"), StartsWith("--options: \"/\" is not a file"));
}

}  // namespace
}  // namespace disttf::render
