// --secret: rendered documents name the run's secret in the engine's form; every task of the run
// gets it, and no other program.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <map>

#include "main/render/targets.h"
#include "tests/main/command_lines.h"
#include "tests/main/render/round_trip.h"
#include "tests/main/render/scripts.h"
#include "tests/main/render/yaml.h"
#include "tests/support/engines.h"

namespace disttf::render {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kServing =
    "--chief --volumes /runs:/runs --train_dir /runs/1 --serve 1 --metrics_port 9400 --secret ";

// Returns the path of the secret's file in a pod's container; "" if it has none. Expects that the
// file is the Secret's key, and that only its owner can read it.
std::string file_of_pod(const json& pod, const std::string& secret) {
  const json& container = pod["containers"].at(0);
  std::string told;
  const std::string flag = "--secret_file=";
  for (const std::string& word : texts(container["args"])) {
    if (word.starts_with(flag)) {
      EXPECT_EQ(told, "") << "the secret's path is set twice";
      told = word.substr(flag.size());
    }
  }
  std::string there;
  for (const json& volume : pod.value("volumes", json::array())) {
    if (!volume.contains("secret")) {
      continue;
    }
    EXPECT_EQ(volume["secret"]["secretName"], secret);
    EXPECT_EQ(volume["secret"]["defaultMode"], 0440);
    EXPECT_EQ(pod["securityContext"]["fsGroup"], 65532);
    EXPECT_EQ(volume["secret"]["items"].at(0)["key"], "DISTTF_SECRET");
    for (const json& mount : container["volumeMounts"]) {
      if (mount["name"] == volume["name"]) {
        EXPECT_EQ(mount["readOnly"], true);
        there = std::string(mount["mountPath"]) + "/" +
                std::string(volume["secret"]["items"].at(0)["path"]);
      }
    }
  }
  EXPECT_EQ(told, there);
  return told;
}

// Returns the spec of every pod below this object, by its location.
std::map<std::string, json> pods_in(const json& object, const std::string& place = "") {
  std::map<std::string, json> found;
  if (object.is_object() && object.contains("containers")) {
    found[place] = object;
  } else if (object.is_structured()) {
    for (const auto& [key, value] : object.items()) {
      found.merge(pods_in(value, place + "/" + key));
    }
  }
  return found;
}

TEST(RenderSecret, EveryPodThatTrainsHasItAsAFileAndNoOther) {
  for (const char* target : {"kubernetes", "statefulset", "jobset", "trainjob", "tfjob"}) {
    SCOPED_TRACE(target);
    std::size_t with = 0;
    std::size_t without = 0;
    for (const json& object :
         parse_yaml(rendered(std::string(target) + " --evaluator " + kServing + "mnist.secret"))) {
      for (const auto& [place, pod] : pods_in(object)) {
        const bool has_it = !file_of_pod(pod, "mnist.secret").empty();
        EXPECT_EQ(has_it, object["kind"] != "Deployment") << object["kind"] << place;
        (has_it ? with : without) += 1;
      }
    }
    EXPECT_EQ(with, 4U);
    EXPECT_EQ(without, 1U);
  }
}

// The image's user is not root.
TEST(RenderSecret, PodsMayReadItAndWriteToTheirVolumes) {
  const auto security_of = [](const std::string& words) {
    const json object = parse_yaml(rendered("kubernetes " + words)).at(1);
    return object["spec"]["template"]["spec"].value("securityContext", json());
  };
  const json group = {{"fsGroup", 65532}, {"fsGroupChangePolicy", "OnRootMismatch"}};
  json root = group;
  root["runAsUser"] = 0;
  EXPECT_EQ(security_of(""), json());
  EXPECT_EQ(security_of("--secret s"), group);
  EXPECT_EQ(security_of("--volumes runs:/runs"), group);
  EXPECT_EQ(security_of("--volumes /srv:/data:ro"), group);
  EXPECT_EQ(security_of("--volumes /srv:/data"), root) << "fsGroup does not act on a hostPath";
}

// Docker has no fsGroup.
TEST(RenderSecret, ContainersOfDockerAreRootWhereTheImagesUserCouldNotReadOrWrite) {
  for (const char* target : {"compose", "swarm", "nomad"}) {
    SCOPED_TRACE(target);
    const auto says_root = [target](const std::string& words) {
      const std::string file = rendered(std::string(target) + " " + words);
      return file.find("\"0:0\"") != std::string::npos || file.find("0:0\n") != std::string::npos;
    };
    EXPECT_FALSE(says_root(""));
    EXPECT_FALSE(says_root("--volumes /srv:/data:ro"));
    EXPECT_TRUE(says_root("--secret s"));
    EXPECT_TRUE(says_root("--volumes /srv:/data"));
  }
}

TEST(RenderSecret, AFileForKubectlSaysHowItsSecretIsMade) {
  for (const char* target : {"kubernetes", "statefulset", "jobset", "trainjob", "tfjob"}) {
    EXPECT_THAT(rendered(std::string(target) + " --secret s --namespace ml"),
                HasSubstr("\n#   kubectl create secret generic s --namespace ml "
                          "--from-file=DISTTF_SECRET=/dev/stdin\n"));
  }
}

// A KServe service does not connect to a task of the run.
TEST(RenderSecret, WhatOnlyServesHasNone) {
  const std::string line = "kserve --volumes runs:/runs --train_dir /runs/1";
  EXPECT_EQ(rendered(line + " --secret s"), rendered(line));
}

TEST(RenderSecret, ComposeMountsAFile) {
  const json file = parse_yaml(rendered(std::string("compose ") + kServing + "mnist.secret")).at(0);
  EXPECT_EQ(file["secrets"], json({{"disttf", {{"file", "./mnist.secret"}}}}));
  for (const auto& [name, service] : file["services"].items()) {
    if (name == "serve-0") {
      EXPECT_FALSE(service.contains("secrets"));
      EXPECT_THAT(texts(service["command"]), Not(Contains(StartsWith("--secret_file"))));
    } else {
      EXPECT_EQ(service["secrets"], json({"disttf"})) << name;
      EXPECT_THAT(texts(service["command"]), Contains("--secret_file=/run/secrets/disttf"));
    }
  }
  EXPECT_EQ(parse_yaml(rendered("compose --secret /etc/s")).at(0)["secrets"]["disttf"]["file"],
            "/etc/s");
}

TEST(RenderSecret, SwarmHandsOutItsOwn) {
  const json file = parse_yaml(rendered(std::string("swarm ") + kServing + "mnist_secret")).at(0);
  EXPECT_EQ(file["secrets"], json({{"disttf", {{"external", true}, {"name", "mnist_secret"}}}}));
  for (const auto& [name, service] : file["services"].items()) {
    if (name == "serve") {
      EXPECT_FALSE(service.contains("secrets"));
    } else {
      EXPECT_EQ(service["secrets"],
                json({{{"source", "disttf"}, {"target", "disttf"}, {"mode", 0400}}}));
      EXPECT_THAT(texts(service["command"]), Contains("--secret_file=/run/secrets/disttf"));
    }
  }
}

TEST(RenderSecret, IsReadByTheEnginesThemselves) {
  const ScratchDirectory scratch;
  scratch.write("mnist.secret", "");
  const std::string compose =
      scratch.write("compose.yaml", rendered(std::string("compose ") + kServing + "mnist.secret"));
  const std::string swarm =
      scratch.write("swarm.yaml", rendered(std::string("swarm ") + kServing + "mnist_secret"));
  if (has_program("docker-compose")) {
    const Ran ran = run_shell("docker-compose -f " + compose + " config");
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    EXPECT_THAT(ran.output, HasSubstr(scratch.path() + "/mnist.secret"));
  } else {
    test_support::skip_without_engine("docker-compose is not installed here (.ci/install engines)");
  }
  if (run_shell("docker stack config --help").exit_code == 0) {
    const Ran ran = run_shell("docker stack config -c " + swarm);
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    EXPECT_THAT(ran.output, HasSubstr("name: mnist_secret"));
  }
}

TEST(RenderSecret, NomadWritesItIntoAFileOfTheTasks) {
  const json job =
      json::parse(rendered(std::string("nomad ") + kServing + "nomad/jobs/mnist")).at("Job");
  for (const json& group : job["TaskGroups"]) {
    const json& task = group["Tasks"].at(0);
    if (group["Name"] == "serve") {
      EXPECT_FALSE(task.contains("Templates"));
      continue;
    }
    EXPECT_EQ(task["Templates"],
              json({{{"EmbeddedTmpl",
                      R"({{ with nomadVar "nomad/jobs/mnist" }}{{ .DISTTF_SECRET }}{{ end }})"},
                     {"DestPath", "secrets/disttf"},
                     {"Perms", "0400"},
                     {"ChangeMode", "noop"}}}));
    EXPECT_EQ(texts(task["Config"]["args"]).back(), "--secret_file=/secrets/disttf");
  }
}

TEST(RenderSecret, MarathonPutsItIntoTheEnvironment) {
  for (const char* target : {"marathon", "dcos"}) {
    const json group = json::parse(rendered(std::string(target) +
                                            " --volumes /runs:/runs --train_dir /runs/1 "
                                            "--serve 1 --tensorboard --secret mnist/secret"));
    for (const json& app : group["apps"]) {
      const std::string id = app["id"];
      if (id == "/mnist/serve" || id == "/mnist/tensorboard") {
        EXPECT_FALSE(app.contains("secrets") || app.contains("env")) << id;
      } else {
        EXPECT_EQ(app["secrets"], json({{"disttf", {{"source", "mnist/secret"}}}}));
        EXPECT_EQ(app["env"], json({{"DISTTF_SECRET", {{"secret", "disttf"}}}}));
      }
    }
  }
}

// Runs the script with a stub for srun: its message about a file of that mode.
class SlurmScript : public testing::Test {
 protected:
  Ran with_mode(mode_t mode) {
    const std::string secret = scratch_.write("s", std::string(32, 's') + "\n");
    chmod(secret.c_str(), mode);
    return run(secret);
  }
  Ran run(const std::string& secret) {
    const std::string srun = scratch_.write("bin/srun", "#!/bin/sh\nprintf '[%s]' \"$@\"\n");
    chmod(srun.c_str(), 0700);
    const std::string script = scratch_.write("job", rendered("slurm --secret " + secret));
    return run_shell("PATH=" + scratch_.path() + "/bin:$PATH SLURM_JOB_ID=1 bash " + script);
  }
  const ScratchDirectory scratch_;
};

TEST_F(SlurmScript, StartsNothingWithASecretThatOthersMayRead) {
  for (const mode_t mode : {0600U, 0400U}) {
    const Ran good = with_mode(mode);
    EXPECT_EQ(good.exit_code, 0) << good.output;
    EXPECT_THAT(good.output, testing::EndsWith("[--secret_file=" + scratch_.path() + "/s]"));
  }
  for (const mode_t mode : {0640U, 0604U, 0660U, 0700U, 0000U}) {
    const Ran bad = with_mode(mode);
    EXPECT_EQ(bad.exit_code, 2) << std::oct << mode;
    EXPECT_THAT(bad.output,
                StartsWith("--secret: \"" + scratch_.path() + "/s\" is not a file of "));
    EXPECT_THAT(bad.output, HasSubstr("0600 or 0400"));
    EXPECT_THAT(bad.output, Not(HasSubstr("[")));
  }
}

TEST_F(SlurmScript, StartsNothingWithASecretThatIsNotThere) {
  for (const std::string& place : {scratch_.path(), scratch_.path() + "/none"}) {
    const Ran bad = run(place);
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_EQ(std::count(bad.output.begin(), bad.output.end(), '\n'), 1) << bad.output;
  }
}

// How tasks that find their cluster in flags parse these arguments, with the file present.
TEST(RenderSecret, TheTasksTakeTheFileThatTheyAreTold) {
  const ScratchDirectory scratch;
  const std::string secret = scratch.write("s", std::string(32, 's') + "\n");
  chmod(secret.c_str(), 0600);
  std::vector<Started> tasks;
  const json file = parse_yaml(rendered("compose --secret s")).at(0);
  for (const auto& [name, service] : file["services"].items()) {
    Started task{.address = name + ":2222", .words = texts(service["command"])};
    for (std::string& word : task.words) {
      if (word == "--secret_file=/run/secrets/disttf") {
        word = "--secret_file=" + secret;
      }
    }
    EXPECT_NE(options_of(task).task.credentials, nullptr);
    tasks.push_back(std::move(task));
  }
  expect_one_cluster(tasks, {});
}

// Each task is on its own machine, so it would not start without one of the two.
TEST(RenderSecret, IsGivenOrRefusedInSoManyWords) {
  for (const Target& target : targets()) {
    const std::string line = std::string("render ") + target.name;
    if (std::string_view(target.name) == "kserve") {
      EXPECT_NO_THROW(static_cast<void>(
          parse(line + " --volumes runs:/runs --train_dir /runs/1")));  // connects to no task
      continue;
    }
    EXPECT_THAT(refusal(line), StartsWith("--secret: missing; the tasks run on several machines"))
        << target.name;
    const std::string text = action_of<Print>(line + " --insecure").text;
    EXPECT_THAT(text, HasSubstr("--insecure=true")) << target.name;
    if (std::string_view(target.name) == "kelda") {
      EXPECT_EQ(
          refusal(line + " --secret_file /nfs/s"),
          "--secret_file: \"/nfs/s\" is not allowed for kelda, whose containers mount nothing");
      EXPECT_EQ(refusal(line + " --task_cert /c --task_key /k --task_ca /a"),
                "--task_cert: \"/c\" is not allowed for kelda, whose containers mount nothing");
      continue;
    }
    EXPECT_THAT(action_of<Print>(line + " --secret_file /nfs/s").text,
                HasSubstr("--secret_file=/nfs/s"))
        << target.name;
    const std::string certified = line + " --task_cert /c --task_key /k --task_ca /a";
    if (std::string_view(target.name) == "slurm" || std::string_view(target.name) == "tfmesos") {
      EXPECT_EQ(refusal(certified), "--task_cert: \"/c\" is not allowed for " +
                                        std::string(target.name) +
                                        ", whose tasks have their files in common");
      continue;
    }
    EXPECT_THAT(action_of<Print>(certified).text,
                testing::AllOf(HasSubstr("--task_cert=/c"), HasSubstr("--task_key=/k"),
                               HasSubstr("--task_ca=/a")))
        << target.name;
  }
  EXPECT_EQ(render_refusal("compose --secret s --insecure"),
            "--secret: \"s\" is not allowed with --insecure; give one of them");
}

TEST(RenderSecret, RefusesANameThatTheEngineHasNot) {
  EXPECT_EQ(render_refusal("kubernetes --secret Mnist"),
            "--secret: \"Mnist\" is not the name of a Secret: lower-case letters, digits, hyphens "
            "and dots, a letter first");
  EXPECT_EQ(render_refusal("slurm --secret mnist.secret"),
            "--secret: \"mnist.secret\" is not the path of a file that all nodes see, from / on: "
            "letters, digits and /._-+@");
  EXPECT_THAT(render_refusal("slurm --secret '/a;b'"), StartsWith("--secret: "));
  EXPECT_THAT(render_refusal("compose --secret $HOME"), StartsWith("--secret: \"$HOME\" is not"));
  EXPECT_THAT(render_refusal("swarm --secret=-x"), StartsWith("--secret: \"-x\" is not the name"));
  EXPECT_THAT(render_refusal("nomad --secret a\"b"), StartsWith("--secret: \"a\\\"b\" is not"));
  EXPECT_THAT(render_refusal("marathon --secret {a}"), StartsWith("--secret: \"{a}\" is not"));
  EXPECT_EQ(render_refusal("tfmesos --secret s"),
            "--secret: \"s\" is not allowed for tfmesos, which has no secrets; --secret_file names "
            "a file on all machines");
  EXPECT_THAT(render_refusal("kelda --secret s"), StartsWith("--secret: \"s\" is not allowed"));
  EXPECT_EQ(render_refusal("compose --secret s --secret_file f"),
            "--secret: \"s\" is not allowed with --secret_file \"f\"; give one of them");
  EXPECT_EQ(render_refusal("compose --secret s --task_cert c --task_key k --task_ca a"),
            "--secret: \"s\" is not allowed with --task_cert \"c\"; give one of them");
}

}  // namespace
}  // namespace disttf::render
