// render --serve: the service beside the training, in each target that supports it.
#include <gmock/gmock.h>

#include "roles/serve/shell/healthcheck.h"
#include "roles/serve/shell/serve_command.h"
#include "tests/main/command_lines.h"
#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"
#include "tests/main/render/yaml.h"
#include "tests/support/engines.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// The data is mounted as well; the service does not need it.
const std::string kShared =
    " --serve 2 --volumes /srv/mnist:/input_data:ro,runs:/runs --train_dir /runs/1"
    " --serve_cpus 2 --serve_memory 256 --image r/d:1";
const std::vector<std::string> kServes = {"serve",          "/runs/1",     "--host=0.0.0.0",
                                          "--host_names=*", "--port=8501", "--name=mnist"};

// disttf parses the arguments of the tasks.
TEST(RenderServing, StartsAServiceOfTheRun) {
  const auto options =
      action_of<RunWith<roles::ServeOptions>>(parse_command_line(kServes, {})).options;
  EXPECT_EQ(options.directory, "/runs/1");
  EXPECT_EQ(options.name, "mnist");
  EXPECT_EQ(options.host, "0.0.0.0");
  EXPECT_EQ(options.port, 8501);
}

void expect_probes(const json& container) {
  EXPECT_EQ(container["readinessProbe"]["httpGet"],
            json({{"path", "/v2/health/ready"}, {"port", 8501}}));
  EXPECT_EQ(container["livenessProbe"]["httpGet"],
            json({{"path", "/v2/health/live"}, {"port", 8501}}));
}

void expect_deployment(const json& deployment) {
  EXPECT_EQ(deployment["kind"], "Deployment");
  EXPECT_EQ(deployment["spec"]["replicas"], 2);
  const json& pod = deployment["spec"]["template"];
  EXPECT_EQ(deployment["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"]);
  const json& container = pod["spec"]["containers"].at(0);
  EXPECT_EQ(texts(container["args"]), kServes);
  EXPECT_EQ(container["image"], "r/d:1");
  EXPECT_EQ(container["ports"], json({{{"name", "http"}, {"containerPort", 8501}}}));
  EXPECT_EQ(container["resources"]["requests"], json({{"cpu", "2"}, {"memory", "256Mi"}}));
  expect_probes(container);
  ASSERT_EQ(pod["spec"]["volumes"].size(), 1U);
  EXPECT_EQ(pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "runs");
  EXPECT_EQ(container["volumeMounts"][0]["mountPath"], "/runs");
  EXPECT_EQ(container["volumeMounts"][0]["readOnly"], true);
}

TEST(RenderServing, IsADeploymentAndAServiceOnKubernetes) {
  for (const std::string target : {"kubernetes", "jobset", "trainjob", "statefulset", "tfjob"}) {
    SCOPED_TRACE(target);
    const auto without = parse_yaml(rendered(target + " --train_dir /runs/1"));
    const auto all = parse_yaml(rendered(target + kShared));
    ASSERT_EQ(all.size(), without.size() + 2);
    expect_deployment(all.back());
    const json& service = all[all.size() - 2];
    EXPECT_EQ(service["kind"], "Service");
    EXPECT_EQ(service["metadata"]["name"], "mnist-serve");
    EXPECT_FALSE(service["spec"].contains("clusterIP"));
    EXPECT_EQ(service["spec"]["selector"], all.back()["spec"]["template"]["metadata"]["labels"]);
    EXPECT_EQ(service["spec"]["ports"], json({{{"name", "http"}, {"port", 8501}}}));
  }
}

// The training's Service selects pods by its labels, and must not select a server.
TEST(RenderServing, ItsPodsAreNoneOfTheTrainings) {
  const auto all = parse_yaml(rendered("kubernetes" + kShared));
  EXPECT_NE(all.front()["spec"]["selector"], all.back()["spec"]["template"]["metadata"]["labels"]);
}

TEST(RenderServing, IsScrapedWhereItAnswers) {
  const auto all = parse_yaml(rendered("kubernetes --metrics_port 9400" + kShared));
  const json& pod = all.back()["spec"]["template"];
  EXPECT_EQ(pod["metadata"]["annotations"]["prometheus.io/port"], "8501");
  EXPECT_EQ(pod["spec"]["containers"][0]["ports"].size(), 1U);
}

TEST(RenderServing, HasAPodMonitorOfItsOwn) {
  for (const std::string target : {"kubernetes", "statefulset", "tfjob"}) {
    SCOPED_TRACE(target);
    const auto all = parse_yaml(rendered(target + " --metrics_port 9400 --pod_monitor" + kShared));
    const json& monitor = all.back();
    const json& pod = all[all.size() - 2]["spec"]["template"];
    EXPECT_EQ(monitor["kind"], "PodMonitor");
    EXPECT_EQ(monitor["metadata"]["name"], "mnist-serve");
    EXPECT_EQ(monitor["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"]);
    EXPECT_EQ(
        monitor["spec"]["podMetricsEndpoints"],
        json({{{"port", pod["spec"]["containers"][0]["ports"][0]["name"]}, {"path", "/metrics"}}}));
  }
}

TEST(RenderServing, KeepsTextThatKubernetesWouldExpand) {
  const auto all = parse_yaml(
      rendered("kubernetes --serve 1 --volumes runs:/runs --train_dir /runs/$(HOSTNAME)"));
  EXPECT_EQ(all.back()["spec"]["template"]["spec"]["containers"][0]["args"][1],
            "/runs/$$(HOSTNAME)");
}

// disttf parses the health check's command.
void expect_healthcheck(const json& service, const std::string& url) {
  const std::vector<std::string> test = texts(service["healthcheck"]["test"]);
  ASSERT_EQ(test.size(), 4U);
  EXPECT_EQ(test[0], "CMD");
  EXPECT_EQ(test[1], "/disttf");  // its path in the Containerfile
  const std::vector<std::string> command{test.begin() + 2, test.end()};
  const auto options =
      action_of<RunWith<roles::HealthcheckOptions>>(parse_command_line(command, {})).options;
  EXPECT_EQ(net::to_string(options.url.value()), url);
  EXPECT_LT(options.timeout, std::chrono::seconds(10));
  EXPECT_EQ(service["healthcheck"]["timeout"], "10s");
}

TEST(RenderServing, IsAServiceAReplicaInCompose) {
  const json file = parse_yaml(rendered("compose" + kShared)).at(0);
  for (const int index : {0, 1}) {
    const json& service = file["services"]["serve-" + std::to_string(index)];
    EXPECT_EQ(texts(service["command"]), kServes);
    EXPECT_THAT(texts(service["ports"]), ElementsAre(std::to_string(8501 + index) + ":8501"));
    EXPECT_THAT(texts(service["volumes"]), ElementsAre("runs:/runs:ro"));
    EXPECT_EQ(service["restart"], "unless-stopped");
    EXPECT_EQ(service["cpus"], 2);
    EXPECT_EQ(service["mem_limit"], "256m");
    expect_healthcheck(service, "http://127.0.0.1:8501/v2/health/ready");
  }
  EXPECT_FALSE(file["services"].contains("serve-2"));
  EXPECT_THAT(texts(file["services"]["worker-0"]["volumes"]),
              ElementsAre("/srv/mnist:/input_data:ro", "runs:/runs"));
}

TEST(RenderServing, IsValidForComposeItself) {
  if (!has_program("docker-compose")) {
    test_support::skip_without_engine("docker-compose is not installed here (.ci/install engines)");
    return;
  }
  const ScratchDirectory scratch;
  const std::string file = scratch.write("compose.yaml", rendered("compose" + kShared));
  const Ran ran = run_shell("docker-compose -f " + file + " config");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("--name=mnist"));
  EXPECT_THAT(ran.output, HasSubstr("/v2/health/ready"));
}

TEST(RenderServing, IsOneServiceOfManyReplicasInASwarm) {
  const json service =
      parse_yaml(rendered("swarm --placement zone=a" + kShared)).at(0)["services"]["serve"];
  EXPECT_EQ(texts(service["command"]), kServes);
  EXPECT_EQ(service["deploy"]["replicas"], 2);
  EXPECT_EQ(service["deploy"]["endpoint_mode"], "vip");
  EXPECT_EQ(service["deploy"]["resources"]["limits"], json({{"cpus", "2"}, {"memory", "256M"}}));
  EXPECT_THAT(texts(service["deploy"]["placement"]["constraints"]),
              ElementsAre("node.labels.zone==a"));
  EXPECT_EQ(service["ports"][0]["published"], 8501);
  expect_healthcheck(service, "http://127.0.0.1:8501/v2/health/live");
}

TEST(RenderServing, IsAGroupWithACheckInNomad) {
  const json job = json::parse(rendered("nomad" + kShared))["Job"];
  const json& group = job["TaskGroups"].back();
  EXPECT_EQ(group["Name"], "serve");
  EXPECT_EQ(group["Count"], 2);
  EXPECT_EQ(group["RestartPolicy"]["Mode"], "delay");
  EXPECT_EQ(group["Networks"][0]["ReservedPorts"], json({{{"Label", "http"}, {"Value", 8501}}}));
  const json& service = group["Services"][0];
  EXPECT_EQ(service["Name"], "mnist-serve");
  EXPECT_EQ(service["Checks"][0]["Path"], "/v2/health/ready");
  EXPECT_EQ(service["Checks"][0]["Interval"], 2'000'000'000);
  const json& task = group["Tasks"][0];
  EXPECT_EQ(texts(task["Config"]["args"]), kServes);
  EXPECT_EQ(task["Config"]["volumes"], json({"runs:/runs:ro"}));
  EXPECT_EQ(task["Resources"]["CPU"], 2000);
  EXPECT_EQ(render_refusal("nomad --serve_port 2223" + kShared),
            "--serve_port: \"2223\" is not free: it is that of a worker");
}

TEST(RenderServing, IsAnAppWithACheckInMarathon) {
  const std::string line =
      " --serve 2 --volumes /nfs:/runs --train_dir /runs/1 --placement rack=a --image r/d:1";
  for (const std::string target : {"marathon", "dcos"}) {
    SCOPED_TRACE(target);
    const json app = json::parse(rendered(target + line))["apps"].back();
    EXPECT_EQ(app["id"], "/mnist/serve");
    EXPECT_EQ(texts(app["args"]), kServes);
    EXPECT_EQ(app["instances"], 2);
    EXPECT_EQ(app["portDefinitions"][0]["port"], 8501);
    EXPECT_EQ(app["constraints"], json::parse(R"([["rack", "CLUSTER", "a"]])"));
    EXPECT_EQ(app["container"]["docker"]["image"], "r/d:1");
    EXPECT_EQ(app["container"]["volumes"],
              json::parse(R"([{"containerPath": "/runs", "hostPath": "/nfs", "mode": "RO"}])"));
    EXPECT_EQ(app["healthChecks"][0]["path"], "/v2/health/live");
  }
}

TEST(RenderServing, WantsACheckpointThatItSees) {
  const std::string wants =
      "--serve: 1 needs --train_dir in a writable directory of --volumes, where the serving tasks "
      "read what the chief saves";
  for (const std::string target :
       {"kubernetes", "statefulset", "tfjob", "compose", "swarm", "nomad", "marathon", "dcos"}) {
    SCOPED_TRACE(target);
    EXPECT_EQ(render_refusal(target + " --serve 1"), wants);
    EXPECT_EQ(render_refusal(target + " --serve 1 --train_dir /runs/1"), wants);
    EXPECT_EQ(render_refusal(target + " --serve 1 --train_dir /run --volumes /nfs:/runs"), wants);
    EXPECT_EQ(render_refusal(target + " --serve 1 --train_dir /runs --volumes /nfs:/runs:ro"),
              wants);
    EXPECT_EQ(render_refusal(target + " --serve 1 --train_dir /runs --volumes /nfs:/runs"),
              "(accepted)");
  }
}

TEST(RenderServing, IsRefusedWhereThereIsNoPlaceForIt) {
  EXPECT_EQ(render_refusal("slurm --serve 1"),
            "--serve: \"1\" is not allowed for slurm, whose jobs end; start disttf serve where it "
            "is to stay");
  EXPECT_THAT(render_refusal("tfmesos --serve 1"), HasSubstr("which starts only ps and workers"));
  EXPECT_THAT(render_refusal("kelda --serve 1"), HasSubstr("whose containers share no directory"));
}

TEST(RenderServing, RefusesABadNumber) {
  EXPECT_THAT(render_refusal("compose --serve -1"), HasSubstr("--serve: "));
  EXPECT_THAT(render_refusal("compose --serve_port 0"), HasSubstr("--serve_port: "));
  EXPECT_THAT(render_refusal("compose --serve_cpus 9999"),
              HasSubstr("--serve_cpus: \"9999\" is not from 0.01 to 1024"));
  EXPECT_EQ(render_refusal("compose --serve_port 65535" + kShared),
            "--serve_port: \"65535\" is not low enough: serve-1 would get 65536, and ports end at "
            "65535");
}

json inference_service(const std::string& line) {
  const auto documents = parse_yaml(rendered("kserve " + line));
  EXPECT_EQ(documents.size(), 1U);
  return documents.at(0);
}

TEST(RenderKserve, ServesFromTheClaimThatTheTrainingWritesTo) {
  const json object = inference_service("--namespace ml --placement disk=ssd" + kShared);
  EXPECT_EQ(object["apiVersion"], "serving.kserve.io/v1beta1");
  EXPECT_EQ(object["kind"], "InferenceService");
  EXPECT_EQ(object["metadata"], json({{"name", "mnist"}, {"namespace", "ml"}}));
  const json& predictor = object["spec"]["predictor"];
  EXPECT_EQ(predictor["minReplicas"], 2);
  EXPECT_EQ(predictor["maxReplicas"], 2);
  EXPECT_EQ(predictor["nodeSelector"], json({{"disk", "ssd"}}));
  EXPECT_FALSE(predictor.contains("volumes"));
  const json& container = predictor["containers"].at(0);
  EXPECT_EQ(container["name"], "kserve-container");
  EXPECT_THAT(texts(container["args"]),
              ElementsAre("serve", "/mnt/models", "--host=0.0.0.0", "--host_names=*", "--port=8501",
                          "--name=mnist"));
  EXPECT_EQ(container["ports"], json({{{"name", "http1"}, {"containerPort", 8501}}}));
  EXPECT_EQ(container["env"], json({{{"name", "STORAGE_URI"}, {"value", "pvc://runs/1"}}}));
  EXPECT_EQ(container["resources"]["requests"], json({{"cpu", "2"}, {"memory", "256Mi"}}));
  expect_probes(container);
}

TEST(RenderKserve, IsScrapedWhereItAnswers) {
  EXPECT_EQ(inference_service("--metrics_port 9400" + kShared)["metadata"]["annotations"],
            json({{"prometheus.io/scrape", "true"},
                  {"prometheus.io/port", "8501"},
                  {"prometheus.io/path", "/metrics"}}));
}

TEST(RenderKserve, TakesTheModelFromAUri) {
  const json object = inference_service("--storage_uri s3://models/mnist");
  const json& predictor = object["spec"]["predictor"];
  EXPECT_EQ(predictor["minReplicas"], 1);
  EXPECT_EQ(predictor["containers"][0]["env"][0]["value"], "s3://models/mnist");
}

TEST(RenderKserve, WantsAModel) {
  EXPECT_THAT(render_refusal("kserve"), HasSubstr("--storage_uri: missing; kserve wants it"));
  EXPECT_THAT(render_refusal("kserve --train_dir /runs/1 --volumes /nfs:/runs"),
              HasSubstr("--storage_uri: missing"));  // no claim
  EXPECT_THAT(render_refusal("kserve --storage_uri models"),
              HasSubstr("--storage_uri: \"models\" is not a URI"));
  EXPECT_THAT(render_refusal("kserve --train_dir /runs/$(X) --volumes runs:/runs"),
              HasSubstr("--train_dir: \"/runs/$(X)\" is not a URI"));
  EXPECT_EQ(render_refusal("compose --storage_uri s3://a"),
            "--storage_uri: \"s3://a\" is not allowed for compose, only for kserve");
}

}  // namespace
}  // namespace disttf::render
