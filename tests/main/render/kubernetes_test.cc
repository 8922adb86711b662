// render kubernetes: pods as the Job controller and the kubelet create them.
#include <gmock/gmock.h>

#include <map>

#include "tests/main/command_lines.h"
#include "tests/main/render/round_trip.h"
#include "tests/main/render/yaml.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<json> objects(const std::string& line) {
  return parse_yaml(rendered("kubernetes " + line));
}

// $(NAME) of a set variable becomes its value, $$ becomes $; anything else stays.
std::string expanded(const std::string& text, const std::map<std::string, std::string>& variables) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text.find(')', at);
    if (text.compare(at, 2, "$$") == 0) {
      out += '$';
      ++at;
    } else if (text.compare(at, 2, "$(") == 0 && end != std::string::npos &&
               variables.contains(text.substr(at + 2, end - at - 2))) {
      out += variables.at(text.substr(at + 2, end - at - 2));
      at = end;
    } else {
      out += text[at];
    }
  }
  return out;
}

// Returns the pod of an index: its host name is JOB-INDEX. The Service that selects it, and whose
// name is its subdomain, gives it a DNS name.
Started pod_of(const json& job, const json& service, std::size_t index) {
  const json& pod = job["spec"]["template"];
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  EXPECT_EQ(pod["spec"]["subdomain"], service["metadata"]["name"]);
  for (const auto& [key, value] : service["spec"]["selector"].items()) {
    EXPECT_EQ(pod["metadata"]["labels"].value(key, ""), value);
  }
  const json& container = pod["spec"]["containers"].at(0);
  const std::string host = std::string(job["metadata"]["name"]) + "-" + std::to_string(index);
  Started task{
      .address = host + "." + std::string(service["metadata"]["name"]) + ":" +
                 container["ports"][0]["containerPort"].dump(),
      .words = {},
      .environment = {{"JOB_COMPLETION_INDEX", std::to_string(index)}, {"HOSTNAME", host}}};
  for (const std::string& word : texts(container["args"])) {
    task.words.push_back(expanded(word, {{"JOB_COMPLETION_INDEX", std::to_string(index)}}));
  }
  return task;
}

std::vector<Started> kubernetes_tasks(const std::vector<json>& all) {
  std::vector<Started> tasks;
  EXPECT_EQ(all.at(0)["kind"], "Service");
  for (std::size_t each = 1; each < all.size(); ++each) {
    const json& spec = all[each]["spec"];
    EXPECT_EQ(all[each]["kind"], "Job");
    EXPECT_EQ(spec["completionMode"], "Indexed");
    EXPECT_EQ(spec["completions"], spec["parallelism"]);
    for (std::size_t index = 0; index < spec["completions"]; ++index) {
      tasks.push_back(pod_of(all[each], all[0], index));
    }
  }
  return tasks;
}

TEST(RenderKubernetes, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(kubernetes_tasks(objects("")), {});
  expect_one_cluster(kubernetes_tasks(objects("--name m --ps 2 --workers 11 --chief --port 5000")),
                     {.ps = 2, .workers = 11, .chief = true});
  expect_one_cluster(kubernetes_tasks(objects("--workers 0 --chief --ps_port 7")),
                     {.workers = 0, .chief = true});
}

// The API server rejects a port that occurs twice, even under different names.
TEST(RenderKubernetes, AnEvaluatorHasAPlaceBesideTheCluster) {
  expect_one_evaluator(kubernetes_tasks(objects("--evaluator --chief")));
}

TEST(RenderKubernetes, NamesEachPortOfTheServiceOnce) {
  const auto ports = [](const std::string& line) {
    const json service = objects(line).at(0);
    std::vector<int> numbers;
    for (const json& port : service["spec"]["ports"]) {
      numbers.push_back(port["port"]);
    }
    return numbers;
  };
  EXPECT_THAT(ports("--chief"), ElementsAre(2222));
  EXPECT_THAT(ports("--chief --ps_port 2223"), ElementsAre(2223, 2222));
}

TEST(RenderKubernetes, KeepsTextThatKubernetesWouldExpand) {
  for (const Started& task :
       kubernetes_tasks(objects("--train_dir /$(JOB_COMPLETION_INDEX)/$$/$x"))) {
    EXPECT_EQ(options_of(task).checkpoint.train_dir, "/$(JOB_COMPLETION_INDEX)/$$/$x");
  }
}

TEST(RenderKubernetes, EndsAJobAtOnceOnlyOnPermanentCodes) {
  const json policy = objects("").at(1)["spec"]["podFailurePolicy"]["rules"];
  EXPECT_EQ(policy[0]["action"], "FailJob");
  EXPECT_EQ(policy[0]["onExitCodes"]["values"], json({1, 2, 3, 4}));
  // Only such a pod may have a podFailurePolicy.
  EXPECT_EQ(objects("").at(1)["spec"]["template"]["spec"]["restartPolicy"], "Never");
}

TEST(RenderKubernetes, WritesVolumesResourcesAndPlacement) {
  const auto all = objects(
      "--namespace ml --volumes /srv:/data:ro,runs:/runs --cpus 1.5 --memory 512 --gpus 1 "
      "--placement disk=ssd --ps_placement disk=any");
  for (const json& object : all) {
    EXPECT_EQ(object["metadata"]["namespace"], "ml");
  }
  const json& pod = all.back()["spec"]["template"]["spec"];
  EXPECT_EQ(pod["nodeSelector"], json({{"disk", "ssd"}}));
  EXPECT_EQ(all.at(1)["spec"]["template"]["spec"]["nodeSelector"], json({{"disk", "any"}}));
  EXPECT_EQ(pod["volumes"][0], json({{"name", "volume-0"}, {"hostPath", {{"path", "/srv"}}}}));
  EXPECT_EQ(pod["volumes"][1]["persistentVolumeClaim"]["claimName"], "runs");
  const json& container = pod["containers"][0];
  EXPECT_EQ(container["volumeMounts"][0]["readOnly"], true);
  EXPECT_EQ(container["volumeMounts"][1]["mountPath"], "/runs");
  EXPECT_EQ(container["resources"]["requests"], json({{"cpu", "1.5"}, {"memory", "512Mi"}}));
  EXPECT_EQ(container["resources"]["limits"], json({{"memory", "512Mi"}, {"nvidia.com/gpu", "1"}}));
}

TEST(RenderKubernetes, LetsMetricsBeScraped) {
  const auto all = objects("--metrics_port 9400");
  for (const Started& task : kubernetes_tasks(all)) {
    EXPECT_THAT(task.words, testing::IsSupersetOf({"--metrics_port=9400", "--metrics_host=all"}));
    const auto run = action_of<RunTask>(parse_command_line(task.words, task.environment));
    EXPECT_EQ(run.metrics.port, 9400);
    EXPECT_EQ(run.metrics.host, "all");
  }
  const json& pod = all.at(1)["spec"]["template"];
  EXPECT_EQ(pod["metadata"]["labels"], json({{"app", "mnist"}}));
  EXPECT_EQ(pod["metadata"]["annotations"], json({{"prometheus.io/scrape", "true"},
                                                  {"prometheus.io/port", "9400"},
                                                  {"prometheus.io/path", "/metrics"}}));
  EXPECT_EQ(pod["spec"]["containers"][0]["ports"],
            json({{{"name", "disttf"}, {"containerPort", 2222}},
                  {{"name", "metrics"}, {"containerPort", 9400}}}));
  EXPECT_EQ(all.size(), 3U);
}

TEST(RenderKubernetes, OmitsMetricsWhereTheyAreNotRequested) {
  const json pod = objects("").at(1)["spec"]["template"];
  EXPECT_FALSE(pod["metadata"].contains("annotations"));
  EXPECT_EQ(pod["spec"]["containers"][0]["ports"].size(), 1U);
}

TEST(RenderKubernetes, GivesAPodMonitorThatSelectsThePodsAndNamesThePort) {
  const auto all = objects("--name m --namespace ml --metrics_port 9400 --pod_monitor");
  const json& monitor = all.at(3);
  EXPECT_EQ(monitor["apiVersion"], "monitoring.coreos.com/v1");
  EXPECT_EQ(monitor["kind"], "PodMonitor");
  EXPECT_EQ(monitor["metadata"]["namespace"], "ml");
  EXPECT_EQ(monitor["spec"]["selector"]["matchLabels"],
            all.at(1)["spec"]["template"]["metadata"]["labels"]);
  EXPECT_EQ(monitor["spec"]["podMetricsEndpoints"],
            json({{{"port", "metrics"}, {"path", "/metrics"}}}));
}

TEST(RenderKubernetes, RefusesMetricsThatWouldBeInTheWay) {
  EXPECT_EQ(render_refusal("kubernetes --pod_monitor"),
            "--pod_monitor: true is not allowed without --metrics_port");
  EXPECT_EQ(render_refusal("kubernetes --metrics_port 2222"),
            "--metrics_port: \"2222\" is not free: the tasks listen on it");
  EXPECT_EQ(render_refusal("kubernetes --ps_port 5 --metrics_port 5"),
            "--metrics_port: \"5\" is not free: the tasks listen on it");
  for (const std::string target : {"compose", "swarm", "nomad"}) {
    EXPECT_EQ(render_refusal(target + " --metrics_port 9400"), "(accepted)");
    EXPECT_THAT(render_refusal(target + " --metrics_port 9400 --pod_monitor"),
                HasSubstr("which makes no pods of Kubernetes"));
  }
  for (const std::string target : {"slurm", "marathon", "dcos", "tfmesos", "kelda"}) {
    EXPECT_THAT(render_refusal(target + " --metrics_port 9400"),
                HasSubstr("whose tasks may share a machine and its ports"));
  }
}

TEST(RenderKubernetes, RefusesANameThatIsTooLongForAHost) {
  const std::string name(53, 'a');  // with -worker-100: 64
  EXPECT_EQ(render_refusal("kubernetes --workers 101 --name " + name),
            "--name: \"" + name + "\" is not short enough: \"" + name +
                "-worker-100\" has 64 characters, a host name may have at most 63");
  EXPECT_EQ(render_refusal("kubernetes --workers 100 --name " + name), "(accepted)");
}

}  // namespace
}  // namespace disttf::render
