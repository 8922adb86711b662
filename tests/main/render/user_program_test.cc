// render TARGET --program -- COMMAND: the tasks that train run the user's program in the user's
// image, the others are disttf's; GPUs are the trainers'.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "main/render/dcos_options.h"
#include "tests/main/command_lines.h"
#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"
#include "tests/main/render/yaml.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The words of a COMMAND that some engine would change: a shell, Kubernetes, Compose or Nomad.
constexpr const char* kMine =
    " --program --program_spare=false --image r/mine:1 --disttf_image r/disttf:2 --gpus 2 --chief "
    "-- python train.py --home=$HOME ${{x}} $(JOB_COMPLETION_INDEX) {task_index}";
const std::vector<std::string> kProgramWords = {
    "--program", "--program_spare=false",   "--",          "python", "train.py", "--home=$HOME",
    "${{x}}",    "$(JOB_COMPLETION_INDEX)", "{task_index}"};
const std::vector<std::string> kPods = {"kubernetes", "statefulset", "jobset", "trainjob", "tfjob"};
const std::string kPodSchema =
    "/properties/spec/properties/tfReplicaSpecs/additionalProperties/properties/template";

// The words before those of the program; fails if `words` do not end with the program's.
std::vector<std::string> without_program(const std::vector<std::string>& words) {
  const auto at = std::find(words.begin(), words.end(), "--program");
  EXPECT_EQ(std::vector<std::string>(at, words.end()), kProgramWords);
  return {words.begin(), at};
}

// The text of `words` after an engine has replaced `doubled` by `single`.
std::vector<std::string> undoubled(const json& words, std::string_view doubled,
                                   std::string_view single) {
  std::vector<std::string> all = texts(words);
  for (std::string& word : all) {
    word = replaced(word, doubled, single);
  }
  return all;
}

// The templates of pods in a target's file, by "ps", "chief" and "worker".
std::map<std::string, json> pods_of(const std::string& target, const std::string& line) {
  std::map<std::string, json> pods;
  for (const json& object : parse_yaml(rendered(target + line))) {
    if (object["kind"] == "TFJob") {
      for (const auto& [type, spec] : object["spec"]["tfReplicaSpecs"].items()) {
        pods[type == "PS" ? "ps" : type == "Chief" ? "chief" : "worker"] = spec["template"];
      }
    } else if (object["kind"] == "JobSet" || object["kind"] == "TrainingRuntime") {
      const json& spec =
          object["kind"] == "JobSet" ? object["spec"] : object["spec"]["template"]["spec"];
      for (const json& job : spec["replicatedJobs"]) {
        pods[job["name"]] = job["template"]["spec"]["template"];
      }
    } else if (object["kind"] == "Job" || object["kind"] == "StatefulSet") {
      const std::string name = object["metadata"]["name"];
      pods[name.substr(name.find('-') + 1)] = object["spec"]["template"];
    }
  }
  EXPECT_EQ(pods.size(), 3U) << target;
  return pods;
}

TEST(RenderUserProgram, APodOfATrainerIsTheUsersAndGetsDisttfFirst) {
  for (const std::string& target : kPods) {
    SCOPED_TRACE(target);
    const auto pods = pods_of(target, kMine);
    for (const char* job : {"chief", "worker"}) {
      const json& spec = pods.at(job)["spec"];
      const json& container = spec["containers"].at(0);
      EXPECT_EQ(container["image"], "r/mine:1");
      EXPECT_THAT(texts(container["command"]), ElementsAre("/opt/disttf/disttf"));
      without_program(undoubled(container["args"], "$$", "$"));
      EXPECT_EQ(container["resources"]["limits"]["nvidia.com/gpu"], "2");
      const json& bringer = spec["initContainers"].at(0);
      EXPECT_EQ(bringer["image"], "r/disttf:2");
      EXPECT_THAT(texts(bringer["args"]), ElementsAre("cp", "/disttf", "/opt/disttf/"));
      EXPECT_FALSE(bringer.contains("command"));  // disttf is the entry point of its image
      EXPECT_FALSE(bringer.contains("resources"));
      const std::string volume = bringer["volumeMounts"].at(0)["name"];
      EXPECT_EQ(bringer["volumeMounts"].at(0)["mountPath"], "/opt/disttf");
      EXPECT_EQ(spec["volumes"].back(), json({{"name", volume}, {"emptyDir", json::object()}}));
      EXPECT_EQ(container["volumeMounts"].back(),
                json({{"name", volume}, {"mountPath", "/opt/disttf"}, {"readOnly", true}}));
    }
  }
}

TEST(RenderUserProgram, APodOfAPsIsDisttfsAndHasNoGpu) {
  for (const std::string& target : kPods) {
    SCOPED_TRACE(target);
    const json spec = pods_of(target, kMine).at("ps")["spec"];
    const json& container = spec["containers"].at(0);
    EXPECT_EQ(container["image"], "r/disttf:2");
    EXPECT_FALSE(container.contains("command"));
    EXPECT_THAT(texts(container["args"]), Not(Contains("--program")));
    EXPECT_FALSE(container.contains("resources"));
    EXPECT_FALSE(spec.contains("initContainers"));
    EXPECT_FALSE(spec.contains("volumes"));
  }
}

// The flag of the secret is disttf's, so it stands before the program's words.
TEST(RenderUserProgram, APodsOtherVolumesStay) {
  const json spec = pods_of("kubernetes", " --secret s --volumes runs:/runs --cpus 2 --memory 99" +
                                              std::string(kMine))
                        .at("worker")["spec"];
  EXPECT_THAT(without_program(undoubled(spec["containers"][0]["args"], "$$", "$")),
              Contains("--secret_file=/run/secrets/disttf/secret"));
  EXPECT_EQ(spec["volumes"].size(), 3U);
  EXPECT_EQ(spec["containers"][0]["volumeMounts"].size(), 3U);
  EXPECT_EQ(spec["initContainers"][0]["resources"]["requests"],
            json({{"cpu", "2"}, {"memory", "99Mi"}}));
}

TEST(RenderUserProgram, AnImageThatHasDisttfIsBroughtNone) {
  for (const std::string& target : kPods) {
    const json spec =
        pods_of(target, " --chief --program=/usr/bin/disttf --image r/mine:1 -- python a.py")
            .at("worker")["spec"];
    EXPECT_THAT(texts(spec["containers"][0]["command"]), ElementsAre("/usr/bin/disttf"));
    EXPECT_FALSE(spec.contains("initContainers")) << target;
    EXPECT_FALSE(spec.contains("volumes")) << target;
  }
}

TEST(RenderUserProgram, PodsFitTheSchema) {
  if (!has_schema_validator()) {
    GTEST_SKIP() << kNoValidator;
  }
  for (const std::string& target : kPods) {
    for (const std::string& more :
         {std::string(), std::string(" --secret s --volumes /srv:/data --cpus 1 --memory 64")}) {
      for (const auto& [job, pod] : pods_of(target, more + kMine)) {
        EXPECT_TRUE(fits_schema(pod, "tfjob.json", kPodSchema)) << target << " " << job;
      }
    }
  }
  EXPECT_TRUE(fits_schema(parse_yaml(rendered(std::string("tfjob") + kMine)).at(0), "tfjob.json"));
}

// The tasks are those of the cluster: what stands before the program's words is read as always.
TEST(RenderUserProgram, TheClusterIsThatWhichWasAskedFor) {
  std::vector<Started> tasks;
  const json file = parse_yaml(rendered(std::string("compose") + kMine)).at(0);
  for (const auto& [name, service] : file["services"].items()) {
    if (name != "bring-disttf") {
      std::vector<std::string> words = undoubled(service["command"], "$$", "$");
      tasks.push_back(
          {.address = name + ":2222", .words = name == "ps-0" ? words : without_program(words)});
    }
  }
  expect_one_cluster(tasks, {.chief = true});
}

TEST(RenderUserProgram, ComposeCopiesDisttfBeforeATrainerStarts) {
  const json file = parse_yaml(rendered(std::string("compose") + kMine)).at(0);
  const json& services = file["services"];
  for (const char* name : {"chief-0", "worker-0", "worker-1"}) {
    const json& service = services[name];
    EXPECT_EQ(service["image"], "r/mine:1");
    EXPECT_THAT(texts(service["entrypoint"]), ElementsAre("/opt/disttf/disttf"));
    EXPECT_THAT(texts(service["volumes"]), ElementsAre("disttf-program:/opt/disttf:ro"));
    EXPECT_EQ(service["depends_on"]["bring-disttf"]["condition"], "service_completed_successfully");
    EXPECT_EQ(service["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"].size(),
              2U);
  }
  const json& ps = services["ps-0"];
  EXPECT_EQ(ps["image"], "r/disttf:2");
  EXPECT_FALSE(ps.contains("entrypoint") || ps.contains("depends_on") || ps.contains("deploy"));
  EXPECT_THAT(texts(services["bring-disttf"]["command"]),
              ElementsAre("cp", "/disttf", "/opt/disttf/"));
  EXPECT_THAT(texts(services["bring-disttf"]["volumes"]),
              ElementsAre("disttf-program:/opt/disttf"));
  EXPECT_TRUE(file["volumes"].contains("disttf-program"));
}

TEST(RenderUserProgram, SwarmCopiesDisttfOnEveryNode) {
  const json file = parse_yaml(rendered(std::string("swarm") + kMine)).at(0);
  const json& bringer = file["services"]["bring-disttf"];
  EXPECT_EQ(bringer["deploy"]["mode"], "global");
  EXPECT_EQ(bringer["deploy"]["restart_policy"]["condition"], "on-failure");
  const json& worker = file["services"]["worker-0"];
  EXPECT_THAT(texts(worker["entrypoint"]), ElementsAre("/opt/disttf/disttf"));
  EXPECT_THAT(texts(worker["volumes"]), ElementsAre("disttf-program:/opt/disttf:ro"));
  EXPECT_EQ(worker["deploy"]["resources"]["reservations"]["generic_resources"].size(), 1U);
  EXPECT_FALSE(file["services"]["ps-0"]["deploy"].contains("resources"));
}

TEST(RenderUserProgram, NomadCopiesDisttfInATaskBeforeTheOther) {
  const json file = json::parse(rendered(std::string("nomad") + kMine));
  for (const json& group : file["Job"]["TaskGroups"]) {
    const json& task = group["Tasks"].back();
    if (group["Name"] == "ps") {
      EXPECT_EQ(group["Tasks"].size(), 1U);
      EXPECT_EQ(task["Config"]["image"], "r/disttf:2");
      EXPECT_FALSE(task["Resources"].contains("Devices"));
      continue;
    }
    const json& bringer = group["Tasks"].at(0);
    EXPECT_EQ(bringer["Lifecycle"]["Hook"], "prestart");
    EXPECT_EQ(bringer["Config"]["image"], "r/disttf:2");
    EXPECT_THAT(texts(bringer["Config"]["args"]), ElementsAre("cp", "/disttf", "/alloc/data/"));
    EXPECT_EQ(task["Config"]["image"], "r/mine:1");
    EXPECT_THAT(texts(task["Config"]["entrypoint"]), ElementsAre("/alloc/data/disttf"));
    without_program(undoubled(task["Config"]["args"], "$${", "${"));
    EXPECT_EQ(task["Resources"]["Devices"][0]["Count"], 2);
  }
}

TEST(RenderUserProgram, SlurmHasOneLineForAllTasks) {
  const std::string script =
      rendered("slurm --program=/nfs/disttf --gpus 2 -- python 'a.py;' $HOME {task_index}");
  EXPECT_THAT(script, HasSubstr("\n#SBATCH --gpus-per-task=2\n"));
  const auto words = words_given_to("srun", script, "SLURM_JOB_ID=1");
  const auto at = std::find(words.begin(), words.end(), "--program");
  EXPECT_THAT(std::vector<std::string>(at, words.end()),
              ElementsAre("--program", "--", "python", "'a.py;'", "$HOME", "{task_index}"));
  EXPECT_THAT(words, Contains("/nfs/disttf"));
  EXPECT_THAT(rendered("slurm --program -- a"), HasSubstr("\n  disttf train --resolver=slurm"));
}

// tfrun joins its words with spaces, fills in the placeholders, and gives the text to a shell. Its
// parser of arguments drops a second -- that is a word of its own.
TEST(RenderUserProgram, TfmesosHandsOnOneWord) {
  const auto words = words_given_to(
      "tfrun", rendered("tfmesos --program=/disttf --gpus 1 -- python a.py --hosts={ps_hosts}"));
  EXPECT_EQ(std::count(words.begin(), words.end(), "--"), 1);
  EXPECT_EQ(words.back(), "--program -- python a.py --hosts={ps_hosts}");
  EXPECT_THAT(words, Contains("-Gw"));
  EXPECT_THAT(words, Not(Contains("-Gs")));
  EXPECT_THAT(render_refusal("tfmesos --program=/disttf -- a 'b"),
              StartsWith("--program: \"'b\" is not a word of COMMAND with letters"));
}

TEST(RenderUserProgram, MarathonRunsAShellsCommandInTheUsersImage) {
  const json group =
      json::parse(rendered("marathon --program=disttf --image r/mine:1 --gpus 1 --secret m/s -- "
                           "python a.py $HOME {task_index}"));
  const json& ps = group["apps"].at(0);
  EXPECT_EQ(ps["container"]["docker"]["image"], "disttf");
  EXPECT_TRUE(ps.contains("args"));
  EXPECT_FALSE(ps.contains("gpus"));
  const json& worker = group["apps"].at(1);
  EXPECT_EQ(worker["container"]["docker"]["image"], "r/mine:1");
  EXPECT_FALSE(worker.contains("args"));
  EXPECT_EQ(worker["gpus"], 1);
  const auto words = words_given_to("disttf", "#!/bin/sh\n" + std::string(worker["cmd"]) + "\n");
  EXPECT_EQ(words.front(), "worker");
  EXPECT_THAT(words, Contains("--on_finish=idle"));
  const auto at = std::find(words.begin(), words.end(), "--program");
  EXPECT_THAT(std::vector<std::string>(at, words.end()),
              ElementsAre("--program", "--", "python", "a.py", "$HOME", "{task_index}"));
}

TEST(RenderUserProgram, SaysHowDisttfGetsIntoAnImageWhereNoStepCanBringIt) {
  for (const std::string target : {"marathon", "dcos", "kelda"}) {
    EXPECT_THAT(render_refusal(target + " --program --image x -- a"),
                testing::AllOf(HasSubstr("cannot bring disttf into the image"),
                               HasSubstr("COPY --from=disttf /disttf /disttf"),
                               HasSubstr("--program=/disttf")))
        << target;
    EXPECT_EQ(render_refusal(target + " --program=/disttf --image x -- a"), "(accepted)");
  }
  EXPECT_THAT(render_refusal("tfmesos --program -- a"), HasSubstr("cannot bring disttf"));
}

TEST(RenderUserProgram, KeldaRunsItInTheJobsThatTrain) {
  const std::string script =
      rendered("kelda --program=/opt/d --image r/mine:1 --chief -- python a.py");
  EXPECT_THAT(script, HasSubstr("const image = \"disttf\";\n"));
  EXPECT_THAT(script,
              HasSubstr(R"(const programs = {"chief":{"image":"r/mine:1","disttf":"/opt/d",)"
                        R"("words":["--program","--","python","a.py"]},"worker":)"));
}

// ---- DC/OS ----

constexpr const char* kWithGpus = R"({
  "service": {"name": "m", "tf_image": "r/tf:1", "gpu_tf_image": "r/tf-gpu:1"},
  "worker": {"count": 2}, "parameter_server": {"count": 1},
  "gpu_worker": {"count": 3, "gpus": 2, "cpus": 4, "mem": 9000}})";

TEST(RenderUserProgram, DcosGpuWorkersAreFurtherWorkers) {
  const ScratchDirectory scratch;
  const std::string options = scratch.write("options.json", kWithGpus);
  const json group =
      json::parse(rendered("dcos --program=/disttf --options " + options + " -- python a.py"));
  std::vector<std::string> ids;
  for (const json& app : group["apps"]) {
    ids.push_back(app["id"]);
    const bool has_gpus = ids.back() >= "/m/worker-2";
    EXPECT_EQ(app.value("gpus", 0), has_gpus ? 2 : 0) << ids.back();
    EXPECT_EQ(app["container"]["docker"]["image"], ids.back() == "/m/ps-0" ? "disttf"
                                                   : has_gpus              ? "r/tf-gpu:1"
                                                                           : "r/tf:1");
  }
  EXPECT_THAT(ids, ElementsAre("/m/ps-0", "/m/worker-0", "/m/worker-1", "/m/worker-2",
                               "/m/worker-3", "/m/worker-4"));
  EXPECT_EQ(group["apps"][5]["cpus"], 4);
  EXPECT_EQ(group["apps"][5]["mem"], 9000);
  const auto words = words_given_to(
      "disttf",
      "#!/bin/sh\n" + replaced(std::string(group["apps"][5]["cmd"]), "/disttf", "disttf") + "\n");
  EXPECT_EQ(words.at(1), "--task_index=4");
  EXPECT_EQ(std::count(words.at(3).begin(), words.at(3).end(), ','), 4) << words.at(3);
}

TEST(RenderUserProgram, DcosTakesNoImageOfThePackage) {
  const DcosOptions options = read_dcos_options("{}", DcosTrains::kCommand);
  EXPECT_EQ(options.image, "");
  EXPECT_EQ(options.gpu_image, "");
  EXPECT_FALSE(options.gpu_workers);
  EXPECT_TRUE(options.warnings.empty());
}

// A job of the package, without a COMMAND.
constexpr const char* kJob = R"({
  "service": {"name": "m", "job_url": "https://example.org/it's.zip", "job_path": "my/path",
              "job_name": "train", "job_context": "{\"a\": {\"b\": 1},\n \"c\": \"$HOME\"}",
              "shared_filesystem": "gs://bucket/m"},
  "worker": {"count": 1}, "parameter_server": {"count": 1}, "gpu_worker": {"count": 1}})";

TEST(RenderUserProgram, DcosRunsTheJobOfThePackage) {
  const ScratchDirectory scratch;
  const std::string line =
      "dcos --program=/disttf --image r/mine:1 --options " + scratch.write("options.json", kJob);
  const json apps = json::parse(rendered(line))["apps"];
  EXPECT_FALSE(apps.at(0).contains("fetch"));
  for (std::size_t each : {1U, 2U}) {
    const json& worker = apps.at(each);
    EXPECT_EQ(worker["fetch"],
              json::parse(R"([{"uri": "https://example.org/it's.zip", "extract": true}])"));
    EXPECT_THAT(std::string(worker["cmd"]),
                StartsWith("cd \"$MESOS_SANDBOX\" && exec /disttf worker --task_index="));
    EXPECT_THAT(
        std::string(worker["cmd"]),
        testing::EndsWith(" --program -- python3 -m disttf.job --job_path=my/path --job_name=train "
                          R"('--job_context={{"a": {{"b": 1}},  "c": "$HOME"}}' )"
                          "--log_dir=gs://bucket/m"));
  }
  EXPECT_TRUE(parse("render " + line + " --insecure").warnings.empty());
}

// The image has the job; without a context, main() gets an empty one.
TEST(RenderUserProgram, DcosJobsNeedANameOnly) {
  const ScratchDirectory scratch;
  const std::string options =
      scratch.write("options.json", R"({"service": {"name": "m", "job_name": "train"}})");
  const json worker =
      json::parse(rendered("dcos --program=/disttf --image x --options " + options))["apps"].at(2);
  EXPECT_FALSE(worker.contains("fetch"));
  EXPECT_THAT(std::string(worker["cmd"]), StartsWith("exec /disttf worker "));
  EXPECT_THAT(std::string(worker["cmd"]),
              testing::EndsWith(" -- python3 -m disttf.job --job_name=train"));
}

TEST(RenderUserProgram, DcosJobsOfOtherOptionsAreRefused) {
  const ScratchDirectory scratch;
  const auto refused = [&scratch](const std::string& service) {
    return render_refusal(
        "dcos --program=/disttf --image x --options " +
        scratch.write("options.json", R"({"service": {"name": "m", )" + service + "}}"));
  };
  EXPECT_EQ(refused(R"("job_url": "a.zip")"),
            "--options: service.job_name is \"\"; expected the module of the job, which --program "
            "runs without a COMMAND after --");
  EXPECT_EQ(refused(R"("job_name": "train", "job_url": "a.zip")"),
            "--options: service.job_url is \"a.zip\"; expected a URL such as "
            "https://example.org/job.zip");
  EXPECT_EQ(refused(R"("job_name": "train", "job_context": "[1]")"),
            "--options: service.job_context is \"[1]\"; expected a map, as JSON");
}

// ---- What does not fit together ----

TEST(RenderUserProgram, RefusesWhatDoesNotFit) {
  EXPECT_EQ(render_refusal("compose --image x -- a"),
            "render: a COMMAND after -- needs --program: it is the program that trains");
  EXPECT_EQ(render_refusal("compose --secret s --program --image x --"),
            "render: COMMAND is missing after --");
  EXPECT_EQ(render_refusal("compose --program --image x"),
            "--program: needs a COMMAND after --, or the path of disttf on every machine, "
            "--program=/nfs/disttf");
  EXPECT_EQ(render_refusal("slurm --program /nfs/disttf"), "(accepted)");
  for (const std::string target :
       {"compose", "swarm", "nomad", "tfjob", "jobset", "kubernetes", "statefulset", "trainjob"}) {
    EXPECT_EQ(render_refusal(target + " --program -- a"),
              "--image: missing; with --program it is the image in which COMMAND runs");
  }
  EXPECT_EQ(render_refusal("compose --program_timeout_secs 9"),
            "--program_timeout_secs: needs --program and a COMMAND after --");
  EXPECT_THAT(render_refusal("compose --disttf_image x"),
              StartsWith("--disttf_image: \"x\" is not allowed without --program"));
  EXPECT_THAT(render_refusal("compose --program --image x --evaluator -- a"),
              StartsWith("--evaluator: \"true\" is not allowed with a program of your own"));
  EXPECT_THAT(render_refusal("compose --program --image x --volumes v:/v --train_dir /v --serve 1 "
                             "-- a"),
              StartsWith("--serve: \"1\" is not allowed with a program of your own"));
  EXPECT_THAT(render_refusal("compose --program --image x --volumes v:/opt/disttf -- a"),
              StartsWith("--volumes: \"v:/opt/disttf\" is not free"));
  EXPECT_THAT(render_refusal("compose --program --image x -- a {x}"),
              StartsWith("COMMAND: \"{x}\" in \"{x}\"; allowed are {ps_hosts}"));
  EXPECT_EQ(render_refusal("kserve --program --image x -- a"),
            "--program: not allowed for kserve, which trains nothing");
}

}  // namespace
}  // namespace disttf::render
