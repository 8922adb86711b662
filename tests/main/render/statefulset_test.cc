// render statefulset: pods as the StatefulSet controller creates them.
#include <gmock/gmock.h>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/yaml.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::Contains;

std::vector<json> set_objects(const std::string& line) {
  return parse_yaml(rendered("statefulset " + line));
}

// Returns the pod of an ordinal: its host name is SET-ORDINAL. The Service that the set names, and
// that selects it, gives it a DNS name.
Started pod_of_set(const json& set, const json& service, std::size_t ordinal) {
  const json& spec = set["spec"];
  EXPECT_EQ(spec["serviceName"], service["metadata"]["name"]);
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  const json& labels = spec["template"]["metadata"]["labels"];
  for (const auto& [key, value] : service["spec"]["selector"].items()) {
    EXPECT_EQ(labels.value(key, ""), value);
  }
  EXPECT_EQ(spec["selector"]["matchLabels"], labels);
  const json& container = spec["template"]["spec"]["containers"].at(0);
  const std::string host = std::string(set["metadata"]["name"]) + "-" + std::to_string(ordinal);
  return {.address = host + "." + std::string(service["metadata"]["name"]) + ":" +
                     container["ports"][0]["containerPort"].dump(),
          .words = texts(container["args"]),
          .environment = {{"HOSTNAME", host}}};
}

std::vector<Started> statefulset_tasks(const std::vector<json>& all) {
  std::vector<Started> tasks;
  EXPECT_EQ(all.at(0)["kind"], "Service");
  for (std::size_t each = 1; each < all.size(); ++each) {
    EXPECT_EQ(all[each]["kind"], "StatefulSet");
    EXPECT_EQ(all[each]["spec"]["podManagementPolicy"], "Parallel");
    for (std::size_t ordinal = 0; ordinal < all[each]["spec"]["replicas"]; ++ordinal) {
      tasks.push_back(pod_of_set(all[each], all[0], ordinal));
    }
  }
  return tasks;
}

TEST(RenderStatefulSet, GivesTheClusterThatWasAskedFor) {
  expect_one_cluster(statefulset_tasks(set_objects("")), {});
  expect_one_cluster(
      statefulset_tasks(set_objects("--name m --ps 2 --workers 11 --chief --port 5000")),
      {.ps = 2, .workers = 11, .chief = true});
  expect_one_cluster(statefulset_tasks(set_objects("--workers 0 --chief")),
                     {.workers = 0, .chief = true});
}

// A StatefulSet restarts every container that ends.
TEST(RenderStatefulSet, AnEvaluatorHasAPlaceBesideTheCluster) {
  expect_one_evaluator(statefulset_tasks(set_objects("--evaluator --chief")));
}

TEST(RenderStatefulSet, KeepsTheTasksUp) {
  for (const Started& task : statefulset_tasks(set_objects("--train_steps 7"))) {
    EXPECT_EQ(options_of(task).task.on_finish, roles::OnFinish::kIdle);
    EXPECT_EQ(options_of(task).config.train_steps, 7U);
  }
}

// Two sets with overlapping selectors would adopt each other's pods.
TEST(RenderStatefulSet, SelectsItsOwnPodsAlone) {
  const auto all = set_objects("--chief");
  for (std::size_t one = 1; one < all.size(); ++one) {
    for (std::size_t other = one + 1; other < all.size(); ++other) {
      EXPECT_NE(all[one]["spec"]["selector"], all[other]["spec"]["selector"]);
    }
  }
}

TEST(RenderStatefulSet, LeavesTextThatKubernetesWouldExpand) {
  const json set = set_objects("--train_dir /$(HOSTNAME)/$x").at(1);
  EXPECT_THAT(texts(set["spec"]["template"]["spec"]["containers"][0]["args"]),
              Contains("--train_dir=/$$(HOSTNAME)/$$x"));
}

TEST(RenderStatefulSet, RefusesANameThatIsTooLongForALabelOfItsPods) {
  const std::string name(46, 'a');  // with -worker: 53
  EXPECT_EQ(render_refusal("statefulset --name " + name),
            "--name: \"" + name + "\" is not short enough: \"" + name +
                "-worker\" has 53 characters, a StatefulSet that has pods may have at most 52");
  EXPECT_EQ(render_refusal("statefulset --name " + name.substr(1)), "(accepted)");
}

TEST(RenderStatefulSet, LetsMetricsBeScraped) {
  const auto all = set_objects("--metrics_port 9400 --pod_monitor");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[3]["kind"], "PodMonitor");
  for (std::size_t set = 1; set <= 2; ++set) {
    const json& pod = all[set]["spec"]["template"];
    EXPECT_EQ(pod["metadata"]["annotations"]["prometheus.io/scrape"], "true");
    EXPECT_EQ(pod["metadata"]["labels"]["app"], all[3]["spec"]["selector"]["matchLabels"]["app"]);
    EXPECT_EQ(pod["spec"]["containers"][0]["ports"][1]["name"], "metrics");
    EXPECT_THAT(texts(pod["spec"]["containers"][0]["args"]), Contains("--metrics_port=9400"));
  }
}

TEST(RenderStatefulSet, RefusesAPortOfThePsAlone) {
  EXPECT_THAT(render_refusal("statefulset --ps_port 7"), testing::StartsWith("--ps_port: "));
}

}  // namespace
}  // namespace disttf::render
