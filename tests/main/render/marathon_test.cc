// render marathon: apps as Marathon starts them and Mesos-DNS names them.
#include <gmock/gmock.h>

#include "tests/main/render/round_trip.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

json group(const std::string& line) { return json::parse(rendered("marathon " + line)); }

TEST(RenderMarathon, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(marathon_tasks(group(""), "marathon.mesos"), {});
  expect_one_cluster(
      marathon_tasks(group("--name m --ps 2 --workers 11 --chief --domain m.example"), "m.example"),
      {.ps = 2, .workers = 11, .chief = true});
}

TEST(RenderMarathon, TasksStayUp) {
  for (const Started& task : marathon_tasks(group(""), "marathon.mesos")) {
    EXPECT_EQ(options_of(task).task.on_finish, roles::OnFinish::kIdle);
  }
}

TEST(RenderMarathon, EveryTaskHasAPortThatMarathonReserves) {
  std::vector<int> ports;
  const json all = group("--ps 2 --workers 3");
  for (const json& app : all["apps"]) {
    EXPECT_EQ(app["requirePorts"], true);
    EXPECT_EQ(app["networks"], json::parse(R"([{"mode": "host"}])"));
    EXPECT_EQ(app["upgradeStrategy"]["minimumHealthCapacity"], 0);
    ports.push_back(app["portDefinitions"].at(0)["port"]);
  }
  EXPECT_THAT(ports, testing::ElementsAre(2222, 2223, 2224, 2225, 2226));
}

TEST(RenderMarathon, WritesVolumesResourcesAndPlacement) {
  const json all = group(
      "--volumes /srv:/data:ro --cpus 1.5 --memory 64 --gpus 1 --image r/d:1 "
      "--placement rack=a,hostname:UNIQUE,hostname:LIKE:10.0.0.1|10.0.0.2");
  const json& app = all["apps"].at(1);
  EXPECT_EQ(app["constraints"], json::parse(R"([["rack", "CLUSTER", "a"], ["hostname", "UNIQUE"],
                            ["hostname", "LIKE", "10.0.0.1|10.0.0.2"]])"));
  EXPECT_EQ(app["container"]["volumes"],
            json::parse(R"([{"containerPath": "/data", "hostPath": "/srv", "mode": "RO"}])"));
  EXPECT_EQ(app["container"]["docker"]["image"], "r/d:1");
  EXPECT_EQ(app["cpus"], 1.5);
  EXPECT_EQ(app["mem"], 64);
  EXPECT_EQ(app["gpus"], 1);
}

TEST(RenderMarathon, TensorBoardSeesWhatTheChiefWrites) {
  const json all = group("--tensorboard --volumes /srv/runs:/runs --train_dir /runs/mnist");
  expect_one_cluster(marathon_tasks(all, "marathon.mesos"), {});
  const json& app = all["apps"].back();
  EXPECT_EQ(app["id"], "/mnist/tensorboard");
  EXPECT_EQ(app["cmd"], "tensorboard --bind_all --port 6006 --logdir /runs/mnist");
  EXPECT_EQ(app["container"]["docker"]["image"], "tensorflow/tensorflow");
  EXPECT_EQ(app["container"]["volumes"], all["apps"][0]["container"]["volumes"]);
  EXPECT_EQ(app["portDefinitions"][0]["port"], 6006);
  EXPECT_EQ(app["requirePorts"], true);
  const json chosen = group(
      "--tensorboard --tensorboard_image r/tb:1 --volumes /srv:/s --train_dir /t --log_dir /s");
  EXPECT_EQ(chosen["apps"].back()["container"]["docker"]["image"], "r/tb:1");
  EXPECT_THAT(chosen["apps"].back()["cmd"], HasSubstr("--logdir /s"));
}

TEST(RenderMarathon, RefusesTensorBoardThatWouldSeeNothing) {
  const std::string sentence =
      "--tensorboard: needs --log_dir or --train_dir in a directory of --volumes";
  EXPECT_EQ(render_refusal("marathon --tensorboard"), sentence);
  EXPECT_EQ(render_refusal("marathon --tensorboard --train_dir /t"), sentence);
  EXPECT_EQ(render_refusal("marathon --tensorboard --volumes /r:/r --train_dir /runs"), sentence);
  EXPECT_EQ(render_refusal("marathon --tensorboard --volumes /r:/r --train_dir /r/$x"),
            "--log_dir: \"/r/$x\" is not a path of letters, digits and /._-");
  EXPECT_EQ(render_refusal("marathon --tensorboard --volumes /r:/r --train_dir /r --name "
                           "mnist-on-mesos"),
            "--name: \"mnist-on-mesos\" is not short enough: \"tensorboard-mnist-on-mesos\" has 26 "
            "characters, Mesos-DNS keeps of a name at most 24");
  EXPECT_EQ(render_refusal("compose --tensorboard"),
            "--tensorboard: true is not allowed for compose, only for marathon and dcos");
}

TEST(RenderMarathon, RefusesANameThatMesosDnsWouldCut) {
  EXPECT_EQ(render_refusal("marathon --workers 10 --name mnist-on-marathon"),
            "--name: \"mnist-on-marathon\" is not short enough: \"worker-9-mnist-on-marathon\" has "
            "26 characters, Mesos-DNS keeps of a name at most 24");
  EXPECT_EQ(render_refusal("marathon --workers 10 --name mnist-on-marath"), "(accepted)");
  EXPECT_THAT(render_refusal("marathon --workers 11 --name mnist-on-marath"), HasSubstr("has 25"));
}

TEST(RenderMarathon, RefusesWhatItHasNot) {
  EXPECT_THAT(render_refusal("marathon --placement hostname:NEAR"),
              StartsWith("--placement: \"hostname:NEAR\" is not FIELD=VALUE or FIELD:OPERATOR"));
  EXPECT_THAT(render_refusal("marathon --volumes runs:/runs"),
              StartsWith("--volumes: \"runs\" is not a path"));
  EXPECT_THAT(render_refusal("marathon --ps_port 1"), StartsWith("--ps_port: "));
  EXPECT_THAT(render_refusal("marathon --port 65534"),
              StartsWith("--port: \"65534\" is not low enough: worker-1 would get 65536"));
}

}  // namespace
}  // namespace disttf::render
