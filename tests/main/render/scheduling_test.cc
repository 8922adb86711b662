// --gang, --queue, --priority, --spread: which scheduler places the pods of a run, and where.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/yaml.h"
#include "tests/support/engines.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kGroupName = "scheduling.k8s.io/group-name";
constexpr const char* kQueueLabel = "kueue.x-k8s.io/queue-name";

std::vector<json> scheduled_objects(const std::string& line) { return parse_yaml(rendered(line)); }

// Returns the pod templates that `render` wrote, by job: "ps", "worker".
json templates_of(const json& object) {
  json found = json::object();
  if (object["kind"] == "TFJob") {
    for (const auto& [type, spec] : object["spec"]["tfReplicaSpecs"].items()) {
      found[type] = spec["template"];
    }
  } else if (object["kind"] == "JobSet") {
    for (const json& job : object["spec"]["replicatedJobs"]) {
      found[std::string(job["name"])] = job["template"]["spec"]["template"];
    }
  } else if (object["kind"] == "TrainingRuntime") {
    for (const json& job : object["spec"]["template"]["spec"]["replicatedJobs"]) {
      found[std::string(job["name"])] = job["template"]["spec"]["template"];
    }
  } else if (object["spec"].contains("template")) {
    const std::string name = object["metadata"]["name"];
    found[name.substr(name.find('-') + 1)] = object["spec"]["template"];
  }
  return found;
}

TEST(RenderScheduling, VolcanoPlacesAllWhomTheOthersWaitFor) {
  for (const char* target : {"kubernetes", "statefulset", "jobset", "trainjob"}) {
    SCOPED_TRACE(target);
    json group;
    json pods = json::object();
    for (const json& object : scheduled_objects(
             std::string(target) +
             " --chief --ps 2 --workers 3 --evaluator --volumes runs:/runs --train_dir /runs/1 "
             "--serve 1 --metrics_port 9400 --namespace ml --gang volcano --queue night "
             "--priority high")) {
      if (object["kind"] == "PodGroup") {
        EXPECT_TRUE(group.is_null());
        group = object;
      }
      pods.update(templates_of(object));
    }
    EXPECT_EQ(group["apiVersion"], "scheduling.volcano.sh/v1beta1");
    EXPECT_EQ(group["metadata"], json({{"name", "mnist"}, {"namespace", "ml"}}));
    EXPECT_EQ(group["spec"],
              json({{"minMember", 6}, {"queue", "night"}, {"priorityClassName", "high"}}));
    EXPECT_EQ(pods.size(), 5U);
    for (const auto& [job, pod] : pods.items()) {
      const bool is_waited_for = job != "evaluator" && job != "serve";
      EXPECT_EQ(pod["spec"].value("schedulerName", ""), is_waited_for ? "volcano" : "") << job;
      EXPECT_EQ(pod["metadata"]["annotations"].value(kGroupName, ""), is_waited_for ? "mnist" : "")
          << job;
      EXPECT_EQ(pod["metadata"]["annotations"]["prometheus.io/scrape"], "true") << job;
      EXPECT_EQ(pod["spec"]["priorityClassName"], "high") << job;
    }
  }
}

// The operator creates the group and assigns its pods to it.
TEST(RenderScheduling, OfATfjobTheOperatorMakesTheGang) {
  const json tfjob = scheduled_objects(
                         "tfjob --ps 2 --chief --gang volcano --queue night --priority high "
                         "--evaluator")
                         .at(0);
  EXPECT_EQ(tfjob["spec"]["runPolicy"]["schedulingPolicy"],
            json({{"minAvailable", 5}, {"queue", "night"}, {"priorityClass", "high"}}));
  for (const json& pod : templates_of(tfjob)) {
    EXPECT_EQ(pod["spec"]["schedulerName"], "volcano");
  }
  EXPECT_FALSE(scheduled_objects("tfjob").at(0)["spec"]["runPolicy"].contains("schedulingPolicy"));
}

TEST(RenderScheduling, KueueAdmitsOneObjectThatWaitsForIt) {
  const json jobset = scheduled_objects("jobset --gang kueue --queue q").at(0);
  EXPECT_EQ(jobset["metadata"]["labels"], json({{kQueueLabel, "q"}}));
  EXPECT_EQ(jobset["spec"]["suspend"], true);
  const json tfjob = scheduled_objects("tfjob --gang kueue --queue q").at(0);
  EXPECT_EQ(tfjob["metadata"]["labels"], json({{kQueueLabel, "q"}}));
  EXPECT_EQ(tfjob["spec"]["runPolicy"]["suspend"], true);
  const auto all = scheduled_objects("trainjob --gang kueue --queue q");
  EXPECT_FALSE(all.at(0)["metadata"].contains("labels"));
  EXPECT_EQ(all.at(1)["metadata"]["labels"], json({{kQueueLabel, "q"}}));
  EXPECT_EQ(all.at(1)["spec"]["suspend"], true);
}

TEST(RenderScheduling, SpreadsPodsThatItsSelectorFinds) {
  for (const char* target : {"kubernetes", "statefulset", "jobset", "trainjob", "tfjob"}) {
    SCOPED_TRACE(target);
    std::size_t count = 0;
    for (const json& object : scheduled_objects(
             std::string(target) + " --volumes runs:/runs --train_dir /runs/1 --serve 1 "
                                   "--spread topology.kubernetes.io/zone")) {
      for (const json& pod : templates_of(object)) {
        ++count;
        const json& spread = pod["spec"]["topologySpreadConstraints"].at(0);
        EXPECT_EQ(spread["topologyKey"], "topology.kubernetes.io/zone");
        EXPECT_EQ(spread["labelSelector"]["matchLabels"]["app"], pod["metadata"]["labels"]["app"]);
      }
    }
    EXPECT_EQ(count, 3U);
  }
}

// Gang scheduling applies to the training, which is in another file.
TEST(RenderScheduling, KserveTakesThePriorityAlone) {
  const auto all = scheduled_objects(
      "kserve --volumes runs:/runs --train_dir /runs/1 --gang kueue --queue q --priority high "
      "--spread kubernetes.io/hostname");
  ASSERT_EQ(all.size(), 1U);
  const json& predictor = all[0]["spec"]["predictor"];
  EXPECT_EQ(predictor["priorityClassName"], "high");
  EXPECT_FALSE(predictor.contains("topologySpreadConstraints"));
  EXPECT_FALSE(all[0]["spec"].contains("suspend"));
  EXPECT_FALSE(all[0]["metadata"].contains("labels"));
}

TEST(RenderScheduling, FitsTheSchemas) {
  if (!has_schema_validator()) {
    GTEST_SKIP() << kNoValidator;
  }
  const std::string more = " --queue q --priority high --spread kubernetes.io/hostname";
  const std::string pod =
      "/properties/spec/properties/tfReplicaSpecs/additionalProperties/properties/template";
  for (const char* gang : {" --gang kueue", " --gang volcano"}) {
    EXPECT_TRUE(fits_schema(scheduled_objects("tfjob" + (gang + more)).at(0), "tfjob.json"));
    const json jobset = scheduled_objects("jobset" + (gang + more)).at(0);
    EXPECT_TRUE(fits_schema(jobset, "jobset.json"));
    EXPECT_TRUE(fits_schema(templates_of(jobset)["ps"], "tfjob.json", pod));
    EXPECT_TRUE(
        fits_schema(scheduled_objects("trainjob" + (gang + more)).at(1), "trainjob.json", "/job"));
  }
}

// Validates against the custom resource of the release in .ci/tools.
TEST(RenderScheduling, FitsVolcanosOwnSchema) {
  const std::string resource = DISTTF_SOURCE_DIR "/build/tools/volcano/podgroups.yaml";
  if (!std::filesystem::exists(resource)) {
    test_support::skip_without_engine("build/tools/volcano is missing (.ci/tools volcano)");
    return;
  }
  if (!has_schema_validator()) {
    GTEST_SKIP() << kNoValidator;
  }
  std::ifstream file(resource);
  std::ostringstream text;
  text << file.rdbuf();
  const json version = parse_yaml(text.str()).at(0)["spec"]["versions"].at(0);
  ASSERT_EQ(version["name"], "v1beta1");
  json schema = version["schema"]["openAPIV3Schema"];
  schema["properties"]["metadata"] = json::object();  // the API server's own
  schema = without_unknown_fields(schema);
  std::size_t groups = 0;
  for (const char* target : {"kubernetes", "statefulset", "jobset", "trainjob"}) {
    for (json& object :
         scheduled_objects(std::string(target) + " --gang volcano --queue night --priority high")) {
      if (object["kind"] == "PodGroup") {
        EXPECT_TRUE(fits(object, schema)) << target;
        ++groups;
        object["spec"]["minMembers"] = 3;
        EXPECT_FALSE(fits(object, schema));
      }
    }
  }
  EXPECT_EQ(groups, 4U);
}

TEST(RenderScheduling, RefusesWhatWouldNotPlaceThem) {
  EXPECT_EQ(render_refusal("kubernetes --gang kueue --queue q"),
            "--gang: \"kueue\" is not allowed for kubernetes, whose Jobs it would admit one by "
            "one; jobset, trainjob and tfjob are admitted as a whole");
  EXPECT_THAT(render_refusal("statefulset --gang kueue --queue q"), StartsWith("--gang: "));
  EXPECT_EQ(render_refusal("jobset --gang kueue"),
            "--queue: missing; --gang kueue needs the name of a LocalQueue");
  EXPECT_EQ(render_refusal("jobset --queue q"), "--queue: \"q\" is not allowed without --gang");
  EXPECT_THAT(render_refusal("jobset --gang slurm"), HasSubstr("kueue"));
  EXPECT_THAT(render_refusal("jobset --gang volcano --queue Night"),
              StartsWith("--queue: \"Night\" is not a name: "));
  // Kueue uses the name as the value of a label.
  const std::string longest(63, 'q');
  EXPECT_EQ(render_refusal("jobset --gang kueue --queue " + longest), "(accepted)");
  EXPECT_EQ(
      render_refusal("jobset --gang kueue --queue q" + longest),
      "--queue: \"q" + longest +
          "\" is not short enough: kueue uses it as a label, which has at most 63 characters");
  EXPECT_EQ(render_refusal("jobset --gang volcano --queue q" + longest), "(accepted)");
  EXPECT_THAT(render_refusal("jobset --priority High"), StartsWith("--priority: \"High\" is not"));
  EXPECT_THAT(render_refusal("jobset --spread a:b"),
              StartsWith("--spread: \"a:b\" is not a label"));
  EXPECT_THAT(render_refusal("nomad --priority high"),
              StartsWith("--priority: \"high\" is not allowed for nomad, only for tfjob, "));
  EXPECT_THAT(render_refusal("slurm --gang volcano"), StartsWith("--gang: \"volcano\" is not"));
}

}  // namespace
}  // namespace disttf::render
