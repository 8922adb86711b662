// Tasks in containers of the Containerfile's image, on a bridge of their own, where they find each
// other by name. They end with the weights of `launch`.
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/process/container_host.h"
#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const Words kTrainers = {"chief-0", "worker-0", "worker-1"};
const Words kTasks = Words{"ps-0", "ps-1"} + kTrainers;
const Words kRun = {"--train_steps=150", "--print_weights_hash", "--heartbeat_timeout=3"};
// Slow enough that the test can disturb the run before it ends.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10"};

class Containers : public ProcessTest {
 protected:
  explicit Containers(bool pods = false) : pods_(pods) {}

  void SetUp() override {
    std::string why;
    host_ = ContainerHost::create(scratch(), pods_, why);
    if (!host_) {
      test_support::skip_without_engine(why);
    }
  }
  void TearDown() override {
    if (host_ && HasFailure()) {
      for (const std::string& name :
           split(host_->run({"podman", "ps", "--all", "--format={{.Names}}"}))) {
        std::cerr << "--- " << name << "\n" << host_->logs(name);
      }
    }
  }
  static Words split(const std::string& text) {
    std::istringstream words(text);
    return {std::istream_iterator<std::string>(words), {}};
  }

  // Returns the volume flag for the data: the folder and its path inside of a container.
  [[nodiscard]] static std::string data_volume() {
    const std::string flag = data_dir_flag();
    return flag.substr(flag.find('=') + 1) + ":/data:ro";
  }
  [[nodiscard]] static Words data_flags_inside() { return {"--data_dir=/data", data_flags()[1]}; }

  // Starts a container with its task's name: "worker-1".
  void start(const std::string& task, const Words& more) {
    const std::size_t dash = task.find('-');
    host_->start_container(task, Words{"--volume=" + data_volume()} + podman_flags(task),
                           Words{task.substr(0, dash), "--task_index=" + task.substr(dash + 1),
                                 "--ps_hosts=ps-0:2222,ps-1:2222", "--chief_host=chief-0:2222",
                                 "--worker_hosts=worker-0:2222,worker-1:2222", "--insecure"} +
                               data_flags_inside() + more);
  }
  // A restarted container has another hardware address, and so has the bridge with the name server.
  // netavark 1.4 does not announce the change, so peers use the old address for half a minute or
  // more. In tests with restarts each container therefore has fixed addresses.
  [[nodiscard]] Words podman_flags(const std::string& task) const {
    if (!keeps_addresses_) {
      return {};
    }
    Words flags;
    for (std::size_t each = 0; each < kTasks.size(); ++each) {
      const std::string address = "10.89.0." + std::to_string(100 + each);
      flags.push_back("--add-host=" + kTasks[each] + ":" + address);
      if (kTasks[each] == task) {
        flags.push_back("--ip=" + address);
        flags.push_back("--mac-address=02:00:00:00:00:0" + std::to_string(each));
      }
    }
    return flags;
  }
  void start_all(const Words& more) {
    for (const std::string& task : kTasks) {
      start(task, more);
    }
  }
  void start_training(const Words& more = {}) {
    start_all(kRun + kSlowly + more);
    for (const std::string& trainer : kTrainers) {
      EXPECT_TRUE(host_->says(trainer, "training step 20 done"));
    }
  }
  // Expects that each task exits on its own with 0, and the trainers with the weights of a launch.
  // `container`: maps a task to the name of its container.
  void expect_undisturbed(const std::function<std::string(const std::string&)>& container =
                              [](const std::string& task) { return task; }) {
    Words trainers;
    for (const std::string& task : kTasks) {
      EXPECT_EQ(host_->exit_code(container(task)), kExitDone) << task;
    }
    for (const std::string& trainer : kTrainers) {
      trainers.push_back(container(trainer));
    }
    expect_weights(trainers, {"--workers=2", "--chief"});
  }
  void expect_weights(const Words& containers, const Words& cluster) {
    Process& undisturbed = run("undisturbed", Words{"launch"} + cluster + kRun + data_flags());
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    for (const std::string& container : containers) {
      const std::string logs = host_->logs(container);
      EXPECT_THAT(logs, HasSubstr("Weights SHA-256: " + weights_hash_in(undisturbed) + "\n"));
      EXPECT_THAT(logs, HasSubstr(data_name() + " accuracy: 0."));
    }
  }

  // Sends a row of pixels to the container from outside, and expects the answer of `predict` with
  // `run_dir`.
  void expect_served_as_predicted(const std::string& container,
                                  const std::filesystem::path& run_dir) {
    std::string row;
    for (int pixel = 0; pixel < 784; ++pixel) {
      row += (pixel == 0 ? "" : ",") + std::to_string(pixel * 7 % 256);
    }
    std::ofstream(scratch() / "row.csv") << row << "\n";
    Process& predicts = run("predict", {"predict", run_dir.string(), "row.csv", "--json"});
    ASSERT_TRUE(exits(predicts, kExitDone));
    const json predicted = json::parse(predicts.standard_output());

    const std::string address =
        split(host_->run({"podman", "inspect",
                          "--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}",
                          container}))
            .at(0);
    const std::string body = R"({"instances":[[)" + row + "]]}";
    std::ofstream(scratch() / "request")
        << "POST /v1/models/mnist:predict HTTP/1.1\r\nHost: serve\r\n"
        << "Connection: close\r\nContent-Length: " << body.size() << "\r\n\r\n"
        << body;
    const std::string answer = host_->run(
        {"/usr/bin/bash", "-c", "exec 3<>/dev/tcp/" + address + "/8501; cat request >&3; cat <&3"});
    const std::string served = captured(answer, R"(predictions":\s*\[(\[[^\]]*\]))");
    EXPECT_EQ(json::parse(served), predicted["probabilities"]) << answer;
  }

  // Returns a rendered file for the engine with two workers.
  std::string render(const std::string& engine, const Words& more,
                     const std::string& volumes = data_volume()) {
    const std::string path = (scratch() / (engine + ".yaml")).string();
    Process& process = run("render", Words{"render", engine, "--workers=2", "--volumes=" + volumes,
                                           "--output=" + path} +
                                         data_flags_inside() + kRun + more);
    EXPECT_TRUE(exits(process, kExitDone));
    return path;
  }

  const bool pods_;
  bool keeps_addresses_ = false;
  std::unique_ptr<ContainerHost> host_;
};

TEST_F(Containers, TrainAndEachEndsWith0) {
  start_all(kRun);
  expect_undisturbed();
}

TEST_F(Containers, WorkerKilledAndStartedAgain) {
  keeps_addresses_ = true;
  start_training();
  host_->run({"podman", "kill", "--signal=KILL", "worker-1"});
  EXPECT_EQ(host_->exit_code("worker-1"), 128 + SIGKILL);
  host_->run({"podman", "start", "worker-1"});
  expect_undisturbed();
}

TEST_F(Containers, PsKilledAndStartedAgain) {
  keeps_addresses_ = true;
  start_training();
  host_->run({"podman", "kill", "--signal=KILL", "ps-1"});
  EXPECT_EQ(host_->exit_code("ps-1"), 128 + SIGKILL);
  host_->run({"podman", "start", "ps-1"});
  expect_undisturbed();
  EXPECT_THAT(host_->logs("ps-0"), HasSubstr("generation 2"));
}

TEST_F(Containers, PsKilledForGood) {
  start_training({"--peer_timeout=2", "--worker_timeout=2"});
  host_->run({"podman", "kill", "--signal=KILL", "ps-1"});
  for (const std::string& task : kTasks) {
    EXPECT_EQ(host_->exit_code(task), task == "ps-1" ? 128 + SIGKILL : kExitLostPeers) << task;
  }
}

TEST_F(Containers, AreToldToStop) {
  start_training();
  host_->run({"podman", "stop", "worker-1"});
  EXPECT_EQ(host_->exit_code("worker-1"), kExitTerminated);
  EXPECT_THAT(host_->logs("worker-1"), HasSubstr("stopped by SIGTERM before the run finished"));
}

TEST_F(Containers, OfTheComposeFileThatIsRendered) {
  if (!std::filesystem::exists("/usr/bin/podman-compose")) {
    test_support::skip_without_engine("podman-compose is missing (.ci/install engines)");
    return;
  }
  write_secret(scratch());  // beside the engine's files
  const std::string file = render("compose", {"--ps=2", "--chief", "--secret=mnist.secret"});
  const Words compose = {"podman-compose", "--file=" + file, "--project-name=mnist"};
  host_->run(compose + Words{"up", "--detach", "ps-0", "ps-1"});
  // A task without the secret is rejected.
  host_->start_container(
      "stranger", {"--network=mnist_default"},
      {"worker", "--task_index=1", "--ps_hosts=ps-0:2222,ps-1:2222", "--chief_host=chief-0:2222",
       "--worker_hosts=worker-0:2222,worker-1:2222", "--dataset=digits", "--insecure"});
  EXPECT_EQ(host_->exit_code("stranger"), kExitUsage);
  EXPECT_THAT(host_->logs("stranger"), HasSubstr("accepts only peers that have its secret"));
  host_->run(compose + Words{"up", "--detach"});
  expect_undisturbed([](const std::string& task) { return "mnist_" + task + "_1"; });
  host_->run(compose + Words{"down"});
}

// One file trains, evaluates and serves: the model that was trained there answers requests from the
// same network.
TEST_F(Containers, OfAComposeFileThatTrainsEvaluatesAndServes) {
  if (!std::filesystem::exists("/usr/bin/podman-compose")) {
    test_support::skip_without_engine("podman-compose is missing (.ci/install engines)");
    return;
  }
  const std::filesystem::path runs = scratch() / "runs";
  std::filesystem::create_directories(runs / "1");
  const std::string file = render(
      "compose",
      {"--evaluator", "--evaluator_secs=0", "--serve=1", "--train_dir=/runs/1", "--insecure"},
      data_volume() + "," + runs.string() + ":/runs");
  const Words compose = {"podman-compose", "--file=" + file, "--project-name=mnist"};
  host_->run(compose + Words{"up", "--detach"});
  for (const std::string task : {"ps-0", "worker-0", "worker-1", "evaluator-0"}) {
    EXPECT_EQ(host_->exit_code("mnist_" + task + "_1"), kExitDone) << task;
  }
  expect_weights({"mnist_worker-0_1", "mnist_evaluator-0_1"}, {"--workers=2"});

  const std::string service = "mnist_serve-0_1";
  EXPECT_TRUE(host_->says(service, "Serving version 150"));
  // Runs the file's health check in the container, as Docker does. (podman-compose 1.0 passes it to
  // a shell, which the image does not have.) Throws if the check fails.
  host_->run({"podman", "exec", service, "/disttf", "healthcheck",
              "http://127.0.0.1:8501/v2/health/ready"});
  const Words disttf = {"podman", "run", "--rm", "--network=mnist_default", "disttf"};
  host_->run(disttf + Words{"healthcheck", "http://serve-0:8501/v2/health/ready"});
  expect_served_as_predicted(service, runs / "1");

  host_->run({"podman", "stop", service});
  EXPECT_EQ(host_->exit_code(service), kExitTerminated);
  EXPECT_THAT(host_->logs(service), HasSubstr("no longer ready"));
  host_->run(compose + Words{"down"});
}

// podman supports pods, but not Jobs, StatefulSets and Services. This fixture does their part: it
// starts a pod for each index, with the name that the Service would give it.
class Pods : public Containers {
 protected:
  Pods() : Containers(true) {}

  // Returns the pod of one index of a rendered Job or StatefulSet.
  static std::string pod(const std::string& name, const std::string& object, int index) {
    std::string text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\nspec:\n";
    constexpr std::size_t kDeeper = 4;  // extra indentation of a template's spec
    std::istringstream lines(object.substr(object.find("    spec:\n")));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      text += line.substr(kDeeper) + "\n";
    }
    // podman would publish each task's port on the machine, and these ports are equal.
    text.erase(text.find("      ports:\n"), std::string("      ports:\n").size());
    text.erase(text.find("        - name: disttf\n          containerPort: 2222\n"),
               std::string("        - name: disttf\n          containerPort: 2222\n").size());
    const std::string variable = "$(JOB_COMPLETION_INDEX)";  // podman 4.3 does not expand it
    if (const std::size_t at = text.find(variable); at != std::string::npos) {
      text.replace(at, variable.size(), std::to_string(index));
    }
    return text;
  }

  // Starts the pods of mnist-ps, one, and of mnist-worker, two. `count`: the object's field for the
  // number of pods. Returns their containers, the ps's first.
  Words play(const std::string& target, const std::string& kind, const std::string& count) {
    std::ifstream file(render(target, {"--ps=1", "--image=localhost/disttf:latest", "--insecure"}));
    const std::string objects((std::istreambuf_iterator<char>(file)), {});
    Words containers;
    for (const auto& [name, replicas] :
         std::map<std::string, int>{{"mnist-ps", 1}, {"mnist-worker", 2}}) {
      const std::size_t begin =
          objects.find("kind: " + kind + "\nmetadata:\n  name: " + name + "\n");
      if (begin == std::string::npos) {
        ADD_FAILURE() << "no " << name << " in\n" << objects;
        continue;
      }
      const std::string object = objects.substr(begin, objects.find("\n---\n", begin) + 1 - begin);
      EXPECT_THAT(object, HasSubstr(count + ": " + std::to_string(replicas) + "\n"));
      for (int index = 0; index < replicas; ++index) {
        const std::string own_name = name + "-" + std::to_string(index) + ".mnist";
        const std::string path = (scratch() / (own_name + ".yaml")).string();
        std::ofstream(path) << pod(own_name, object, index);
        host_->run({"podman", "kube", "play", "--network=cluster", path});
        containers.push_back(own_name + "-disttf");
      }
    }
    return containers;
  }
};

TEST_F(Pods, OfTheKubernetesJobsThatAreRendered) {
  const Words containers = play("kubernetes", "Job", "completions");
  for (const std::string& container : containers) {
    EXPECT_EQ(host_->exit_code(container), kExitDone) << container << host_->logs(container);
  }
  expect_weights({containers[1], containers[2]}, {"--workers=2"});
}

// The pods keep running, because the controller would restart any that ends.
TEST_F(Pods, OfTheStatefulSetsThatAreRendered) {
  const Words containers = play("statefulset", "StatefulSet", "replicas");
  for (const std::string& container : containers) {
    EXPECT_TRUE(host_->says(container, "the run is over; staying until SIGTERM")) << container;
    host_->run({"podman", "stop", container});
    EXPECT_EQ(host_->exit_code(container), kExitDone) << container << host_->logs(container);
  }
  expect_weights({containers[1], containers[2]}, {"--workers=2"});
}

}  // namespace
}  // namespace disttf::test_process
