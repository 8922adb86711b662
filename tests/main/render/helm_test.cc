// Renders deploy/helm/disttf with helm: the result equals that of `render kubernetes`.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"
#include "tests/main/render/yaml.h"
#include "tests/support/engines.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

constexpr const char* kChart = DISTTF_SOURCE_DIR "/deploy/helm/disttf";
constexpr const char* kHelm = DISTTF_SOURCE_DIR "/build/tools/helm/helm";

// Every value of the chart.
constexpr const char* kAllValues =
    "--namespace ml --set nameOverride=m,ps=2,workers=3,chief=true,evaluator=true,port=5000 "
    "--set 'volumes[0].hostPath=/srv,volumes[0].path=/data,volumes[0].readOnly=true' "
    "--set 'volumes[1].claim=runs,volumes[1].path=/runs' --set flags.train_dir=/runs/1 "
    "--set flags.learning_rate=0.1,flags.sync_replicas=true,flags.hidden_units='{128,64}' "
    "--set "
    "resources.requests.cpu=1.5,resources.requests.memory=512Mi,resources.limits.memory=512Mi "
    "--set nodeSelector.disk=ssd,psNodeSelector.disk=any,serve.replicas=2,secret=mnist-secret "
    "--set metrics.enabled=true,metrics.podMonitor.enabled=true "
    "--set networkPolicy.enabled=true,podDisruptionBudget.enabled=true";
// The same settings for render.
constexpr const char* kAllWords =
    "--namespace ml --name m --ps 2 --workers 3 --chief --evaluator --port 5000 "
    "--volumes /srv:/data:ro,runs:/runs --train_dir /runs/1 --learning_rate 0.1 --sync_replicas "
    "--hidden_units 128,64 --cpus 1.5 --memory 512 --placement disk=ssd --ps_placement disk=any "
    "--serve 2 --metrics_port 9400 --pod_monitor --secret mnist-secret";

// Adds --insecure if the values do not mention a secret; another test covers secrets.
std::string decided(const std::string& values) {
  const bool is_decided = values.find("secret") != std::string::npos;
  return values + (is_decided ? "" : " --set flags.insecure=true");
}

class Helm : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kHelm)) {
      test_support::skip_without_engine(
          "there is no build/tools/helm/helm (.ci/tools helm makes it)");
    }
  }

  static Ran helm(const std::string& words) { return run_shell(std::string(kHelm) + " " + words); }
  static Ran template_of(const std::string& values) {
    return helm(std::string("template run1 ") + kChart + " --kube-version 1.29.0 " + values);
  }
  static std::vector<json> objects_of(const std::string& values) {
    const Ran ran = template_of(decided(values));
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    return parse_yaml(ran.output);
  }
};

// Returns objects by name, e.g. "Job/m-ps".
std::map<std::string, json> by_name(const std::vector<json>& objects) {
  std::map<std::string, json> found;
  for (const json& object : objects) {
    found[std::string(object["kind"]) + "/" + std::string(object["metadata"]["name"])] = object;
  }
  return found;
}

const json& only_of(const std::map<std::string, json>& objects, const std::string& name) {
  const auto found = objects.find(name);
  if (found == objects.end()) {
    throw std::runtime_error("no " + name);
  }
  return found->second;
}

// Returns an object without the parts that only the chart has: an image with a tag, labels, a pod
// without a token; and with its flags sorted.
json as_rendered(json object) {
  object["metadata"].erase("labels");
  object["metadata"].erase("namespace");
  json& spec = object["spec"];
  if (object["kind"] == "Service") {
    spec.erase("type");
    for (json& port : spec["ports"]) {
      port.erase("name");
    }
  }
  if (!spec.contains("template")) {
    return object;
  }
  json& labels = spec["template"]["metadata"]["labels"];
  labels = json({{"app", labels["app"]}});
  json& pod = spec["template"]["spec"];
  pod.erase("automountServiceAccountToken");
  if (pod.contains("initContainers")) {
    pod["initContainers"][0].erase("imagePullPolicy");
    pod["initContainers"][0].erase("image");
  }
  json& container = pod["containers"][0];
  container.erase("imagePullPolicy");
  container.erase("image");
  auto words = texts(container["args"]);
  // The words of a user's program keep their order.
  std::sort(words.begin() + 1, std::find(words.begin(), words.end(), "--program"));
  container["args"] = words;
  return object;
}

void expect_the_same(const std::vector<json>& made, const std::string& line) {
  const auto chart = by_name(made);
  for (const auto& [name, object] : by_name(parse_yaml(rendered("kubernetes " + line)))) {
    EXPECT_EQ(as_rendered(only_of(chart, name)), as_rendered(object)) << name;
  }
}

TEST_F(Helm, FindsNothingInItsLint) {
  for (const std::string& values : {decided(""), std::string(kAllValues)}) {
    const Ran ran =
        helm(std::string("lint --strict ") + kChart + " --kube-version 1.29.0 " + values);
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
  }
}

TEST_F(Helm, MakesTheObjectsThatRenderWrites) {
  expect_the_same(objects_of(""), "--name run1");
  expect_the_same(objects_of("--set workers=4 --set flags.learning_rate=0.1"),
                  "--name run1 --workers 4 --learning_rate 0.1");
  expect_the_same(objects_of("--set workers=0,chief=true"), "--name run1 --workers 0 --chief");
  expect_the_same(objects_of(kAllValues), kAllWords);
  expect_the_same(objects_of(std::string(kAllValues) +
                             " --set volcano.enabled=true,volcano.queue=night "
                             "--set priorityClassName=high,spread=kubernetes.io/hostname"),
                  std::string(kAllWords) +
                      " --gang volcano --queue night --priority high "
                      "--spread kubernetes.io/hostname");
}

// The images differ by design in as_rendered(), except that of the program.
TEST_F(Helm, RunsAUsersProgramAsRenderDoes) {
  const std::string words = " -- python train.py $HOME {task_index}";
  expect_the_same(
      objects_of("--set 'program.command={python,train.py,$HOME,\\{task_index\\}}' --set "
                 "chief=true,program.image=r/mine:1,gpus=2,resources.requests.cpu=1.5"),
      "--name run1 --chief --gpus 2 --cpus 1.5 --program --image r/mine:1" + words);
  expect_the_same(objects_of("--set 'program.command={python}' --set "
                             "program.image=r/mine:1,program.path=/disttf"),
                  "--name run1 --program=/disttf --image r/mine:1 -- python");
  const auto all = by_name(objects_of("--set 'program.command={a}' --set program.image=r/mine:1"));
  const auto image = [&all](const std::string& name) {
    return only_of(all, name)["spec"]["template"]["spec"]["containers"][0]["image"];
  };
  EXPECT_EQ(image("Job/run1-worker"), "r/mine:1");
  EXPECT_THAT(std::string(image("Job/run1-ps")), testing::StartsWith("disttf:"));
}

// Helm reads numbers in files as floats, and lists without commas.
TEST_F(Helm, TakesFlagsOfAFileAsTheyAreMeant) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write(
      "values.yaml",
      "workers: 3\nflags:\n  train_steps: 12345678\n  learning_rate: 0.00001\n"
      "  hidden_units: [128, 64]\n  sync_replicas: false\n  train_dir: '/$(HOSTNAME)/$$ \"x\"'\n");
  const auto all = by_name(objects_of("-f " + file));
  const auto words =
      texts(only_of(all, "Job/run1-worker")["spec"]["template"]["spec"]["containers"][0]["args"]);
  EXPECT_THAT(words, Contains("--train_steps=12345678"));
  EXPECT_THAT(words, Contains("--learning_rate=1e-05"));
  EXPECT_THAT(words, Contains("--hidden_units=128,64"));
  EXPECT_THAT(words, Contains("--sync_replicas=false"));
  EXPECT_THAT(words, Contains("--train_dir=/$$(HOSTNAME)/$$$$ \"x\""));
}

TEST_F(Helm, EachPodFitsTheSchema) {
  if (!has_schema_validator()) {
    GTEST_SKIP() << kNoValidator;
  }
  std::size_t count = 0;
  for (const json& object : objects_of(
           std::string(kAllValues) +
           " --set spread=kubernetes.io/hostname,priorityClassName=high,schedulerName=mine "
           "--set 'secrets={bucket},env[0].name=AWS_REGION,env[0].value=x' "
           "--set 'tolerations[0].key=a,tolerations[0].operator=Exists' "
           "--set securityContext.readOnlyRootFilesystem=true,podSecurityContext.runAsUser=1 "
           "--set serviceAccountName=s,'imagePullSecrets[0].name=r',podLabels.a=b")) {
    if (object["spec"].contains("template")) {
      ++count;
      EXPECT_TRUE(fits_schema(
          object["spec"]["template"], "tfjob.json",
          "/properties/spec/properties/tfReplicaSpecs/additionalProperties/properties/template"));
    }
  }
  EXPECT_EQ(count, 5U);
}

TEST_F(Helm, PoliciesAndBudgetsSelectThePodsThatTheyAreFor) {
  const auto all = by_name(objects_of(kAllValues));
  const json& policy = only_of(all, "NetworkPolicy/m")["spec"];
  EXPECT_EQ(policy["podSelector"]["matchLabels"], json({{"app", "m"}}));
  EXPECT_EQ(policy["ingress"][0]["from"][0]["podSelector"], policy["podSelector"]);
  EXPECT_EQ(policy["ingress"][0]["ports"][0]["port"], 5000);
  EXPECT_EQ(policy["ingress"][1], json({{"ports", {{{"port", 9400}}}}}));
  EXPECT_EQ(only_of(all, "NetworkPolicy/m-serve")["spec"]["podSelector"]["matchLabels"],
            json({{"app", "m-serve"}}));
  const json& budget = only_of(all, "PodDisruptionBudget/m-ps")["spec"];
  EXPECT_EQ(budget["minAvailable"], 2);
  EXPECT_EQ(budget["selector"]["matchLabels"], json({{"batch.kubernetes.io/job-name", "m-ps"}}));
  EXPECT_EQ(only_of(all, "PodDisruptionBudget/m-serve")["spec"]["maxUnavailable"], 1);
}

TEST_F(Helm, VolcanoPlacesAllOfTheClusterOrNone) {
  const auto all = by_name(objects_of(std::string(kAllValues) +
                                      " --set volcano.enabled=true,volcano.queue=night "
                                      "--set priorityClassName=high"));
  const json& group = only_of(all, "PodGroup/m");
  EXPECT_EQ(group["apiVersion"], "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ(group["spec"],
            json({{"minMember", 6}, {"queue", "night"}, {"priorityClassName", "high"}}));
  for (const char* name : {"Job/m-ps", "Job/m-chief", "Job/m-worker"}) {
    const json& pod = only_of(all, name)["spec"]["template"];
    EXPECT_EQ(pod["spec"]["schedulerName"], "volcano") << name;
    EXPECT_EQ(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "m") << name;
  }
  for (const char* name : {"Job/m-evaluator", "Deployment/m-serve"}) {  // no task waits for these
    const json& pod = only_of(all, name)["spec"]["template"];
    EXPECT_FALSE(pod["spec"].contains("schedulerName")) << name;
    EXPECT_FALSE(pod["metadata"]["annotations"].contains("scheduling.k8s.io/group-name")) << name;
  }
}

// disttf validates the values of variables, not the chart.
TEST_F(Helm, TakesVariablesInThePlaceOfASecret) {
  for (const char* values :
       {"--set 'secrets={mnist-secret}'",
        "--set 'env[0].name=DISTTF_SECRET,env[0].valueFrom.secretKeyRef.name=mnist-secret'",
        "--set flags.secret_file=/nfs/mnist.secret",
        "--set "
        "flags.task_cert=/tls/tls.crt,flags.task_key=/tls/tls.key,flags.task_ca=/tls/ca.crt"}) {
    EXPECT_EQ(template_of(values).exit_code, 0) << values;
  }
}

TEST_F(Helm, SaysWhatIsWrong) {
  const auto says = [](const std::string& values) {
    const Ran ran = template_of(decided(values));
    EXPECT_NE(ran.exit_code, 0) << values;
    return ran.output;
  };
  EXPECT_THAT(says("--set flags.larning_rate=0.1"), HasSubstr("larning_rate is not allowed"));
  EXPECT_THAT(says("--set flags.optimizer=sgdd"), HasSubstr("flags.optimizer"));
  EXPECT_THAT(says("--set flags.batch_size=0"), HasSubstr("flags.batch_size"));
  EXPECT_THAT(says("--set flags.learning_rate=fast"), HasSubstr("flags.learning_rate"));
  EXPECT_THAT(says("--set worker=3"), HasSubstr("worker is not allowed"));
  EXPECT_THAT(says("--set workers=0"), HasSubstr("workers: must be at least 1"));
  EXPECT_THAT(says("--set serve.replicas=1"), HasSubstr("wants flags.train_dir"));
  EXPECT_THAT(says("--set metrics.podMonitor.enabled=true"), HasSubstr("without metrics.enabled"));
  EXPECT_THAT(says("--set volcano.enabled=true,schedulerName=mine"), HasSubstr("schedulerName"));
  EXPECT_THAT(says("--set secret=s,flags.secret_file=f"), HasSubstr("flags.secret_file"));
  EXPECT_THAT(says("--set secret=s,flags.insecure=true"), HasSubstr("flags.insecure"));
  EXPECT_THAT(says("--set secret=s,flags.task_cert=c"), HasSubstr("flags.task_cert"));
  EXPECT_THAT(says("--set secret=,flags.task_cert=c,flags.task_key=k"),
              HasSubstr("needs flags.task_key and flags.task_ca"));
  EXPECT_THAT(says("--set secret=,env[0].name=TZ,env[0].value=UTC"),
              HasSubstr("secret: missing; the pods are"));
  EXPECT_THAT(says("--set secret=,workers=3"), HasSubstr("secret: missing; the pods are"));
  EXPECT_THAT(says("--set 'program.command={a}'"), HasSubstr("program.image: missing"));
  EXPECT_THAT(says("--set 'program.command={a}' --set program.image=x,evaluator=true"),
              HasSubstr("not allowed with an evaluator"));
  EXPECT_THAT(says("--set nameOverride=Mnist"), HasSubstr("must consist of lower-case letters"));
  EXPECT_THAT(says("--set nameOverride=" + std::string(55, 'a')), HasSubstr("64 characters"));
}

}  // namespace
}  // namespace disttf::render
