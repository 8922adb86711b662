// launch with an options file of DC/OS' TensorFlow package, its limits and its control address; and
// the commands that manage a launch.
#include <gmock/gmock.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <set>
#include <string>

#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "roles/launch/shell/job_update.h"
#include "roles/launch/shell/manage.h"
#include "roles/launch/shell/program_launcher.h"
#include "roles/servers/shell/task_server.h"
#include "tests/data/scratch.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::StartsWith;

class LaunchOptionsFile : public testing::Test {
 protected:
  // Writes a file with the text and returns its path.
  std::string file(const std::string& text) {
    const std::string path = scratch_.path() / "options.json";
    std::ofstream(path) << text;
    return path;
  }
  roles::LaunchOptions launch(const std::string& text, const std::string& flags = {}) {
    return parse_launch("launch --options " + file(text) + " " + flags);
  }
  data::test::ScratchDirectory scratch_;
};

constexpr const char* kMnist = R"({
  "service": {"job_context": "{\"train_steps\": 50, \"hidden_units\": [30, 20]}",
              "shared_filesystem": "/srv/mnist"},
  "worker": {"count": 4, "cpus": 0.5, "mem": 2000},
  "parameter_server": {"count": 1, "cpus": 2, "mem": 1000}})";

TEST_F(LaunchOptionsFile, SaysWhatIsStartedAndHow) {
  const roles::LaunchOptions options = launch(kMnist);
  EXPECT_EQ(options.workers, 4U);
  EXPECT_EQ(options.ps, 1U);
  EXPECT_THAT(options.trainer_limits.cpus, Optional(0.5));
  EXPECT_THAT(options.trainer_limits.memory_mib, Optional(2000U));
  EXPECT_THAT(options.ps_limits.cpus, Optional(2.0));
  EXPECT_THAT(options.ps_limits.memory_mib, Optional(1000U));
  EXPECT_THAT(options.task_arguments,
              testing::UnorderedElementsAre("--train_steps=50", "--hidden_units=30,20",
                                            "--train_dir=/srv/mnist"));
  EXPECT_THAT(options.notes, IsEmpty());
}

TEST_F(LaunchOptionsFile, HasThePackagesDefaults) {
  const roles::LaunchOptions options = launch("{}");
  EXPECT_EQ(options.workers, 3U);
  EXPECT_EQ(options.ps, 2U);
  EXPECT_THAT(options.trainer_limits.memory_mib, Optional(4096U));
}

TEST_F(LaunchOptionsFile, TheCommandLineWinsAndSaysSo) {
  const roles::LaunchOptions options =
      launch(kMnist, "--workers 2 --train_steps 7 --cpus 3 --ps_memory 5 --train_dir /elsewhere");
  EXPECT_EQ(options.workers, 2U);
  EXPECT_THAT(options.trainer_limits.cpus, Optional(3.0));
  EXPECT_THAT(options.ps_limits.memory_mib, Optional(5U));
  EXPECT_THAT(options.task_arguments, testing::Contains("--train_steps=7"));
  EXPECT_THAT(options.task_arguments, testing::Contains("--train_dir=/elsewhere"));
  EXPECT_THAT(
      options.notes,
      ElementsAre("--options: worker.count is 4 and has no effect because --workers is given"));
}

TEST_F(LaunchOptionsFile, IsCheckedAsRenderDoesIt) {
  const auto refused = [this](const std::string& text) {
    return refusal("launch --options " + file(text));
  };
  EXPECT_EQ(refused(R"({"gpu_worker": {"count": 1}})"),
            "--options: gpu_worker.count is 1; expected 0: disttf computes on CPUs; give these "
            "tasks to worker.count, or train your own program (disttf render dcos --program)");
  EXPECT_THAT(refused(R"({"worker": {"count": 0}})"), StartsWith("--options: worker.count is 0"));
  EXPECT_THAT(refused(R"({"worker": {"cpus": -1}})"), HasSubstr("cpus"));
  EXPECT_THAT(refused("nonsense"), HasSubstr("not valid JSON"));
  for (const char* key : {"workers", "control", "options", "ps_hosts", "listen_fd", "cpus"}) {
    EXPECT_EQ(
        refused(R"({"service": {"job_context": "{\")" + std::string(key) + R"(\": \"1\"}"}})"),
        "--options: service.job_context has the key \"" + std::string(key) +
            "\"; expected a training flag, such as batch_size");
  }
  EXPECT_THAT(refused(R"({"service": {"job_context": "{\"batch_size\": 0}"}})"),
              StartsWith("--options: service.job_context: --batch_size: 0 is not"));
  EXPECT_THAT(refusal("launch --options /none"), StartsWith("--options: \"/none\""));
}

TEST_F(LaunchOptionsFile, IsReconsideredWithAnUpdate) {
  const roles::LaunchOptions options = launch(kMnist, "--batch_size 10");
  const roles::LaunchOptions grown = options.reconsider({.workers = 6, .options = {}});
  EXPECT_EQ(grown.workers, 6U);
  EXPECT_THAT(grown.task_arguments, testing::Contains("--train_steps=50"));
  const roles::LaunchOptions other =
      options.reconsider({.workers = {}, .options = R"({"worker": {"count": 5},
                                     "service": {"job_context": "{\"batch_size\": 99}"}})"});
  EXPECT_EQ(other.workers, 5U);
  EXPECT_THAT(other.task_arguments, ElementsAre("--batch_size=10")) << "the command line wins";
}

TEST_F(LaunchOptionsFile, AnUpdateIsCheckedToo) {
  const roles::LaunchOptions options = launch(kMnist);
  EXPECT_THROW(options.reconsider({.workers = 1'000'000, .options = {}}), std::invalid_argument);
  EXPECT_THROW(options.reconsider({.workers = 0, .options = {}}), std::invalid_argument);
  EXPECT_THROW(options.reconsider({.workers = {}, .options = "{"}), std::invalid_argument);
}

// An update must not redirect a task to other files, addresses or programs (job_update.h).
TEST(LaunchUpdates, ChangeNoFlagThatNamesAFileAnAddressOrAProgram) {
  const CommandApp app(*find_command("launch"));
  const std::set<std::string> outside = {"FILE", "DIR",  "PATH",    "URL",   "NAME|FILE",
                                         "HOST", "PORT", "ADDRESS", "WORDS", "HOST:PORT"};
  std::size_t changed = 0;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string name = option->get_lnames().front();
    std::string type = option->get_type_name();
    type = type.substr(0, type.find_first_of(":, ="));
    if (outside.contains(type) || option->get_group() == kLaunchGroup) {
      EXPECT_FALSE(roles::is_changed_by_updates(name)) << name << " " << type;
    }
    changed += roles::is_changed_by_updates(name) ? 1U : 0U;
  }
  EXPECT_EQ(changed, 55U) << "the list names flags that launch does not have, or a new one";
  EXPECT_FALSE(roles::is_changed_by_updates("confine"));
}

TEST(LaunchLimits, AreFlagsToo) {
  EXPECT_THAT(parse_launch("launch --cpus 1.5").trainer_limits.cpus, Optional(1.5));
  EXPECT_FALSE(parse_launch("launch").trainer_limits.cpus.has_value());
  EXPECT_THAT(refusal("launch --cpus 1e9"), HasSubstr("from 0.01 to 1024"));
  EXPECT_THAT(refusal("launch --ps_cpus 0"), StartsWith("--ps_cpus: \"0\""));
  EXPECT_THAT(refusal("launch --memory 0"), StartsWith("--memory: 0 is not"));
}

TEST(LaunchControl, HasAnAddressOfItsOwn) {
  const auto control = [](const std::string& line, const Environment& environment = {}) {
    return parse_launch(line, environment).control;
  };
  EXPECT_EQ(control("launch")->directory, "/tmp/disttf-" + std::to_string(geteuid()));
  EXPECT_EQ(control("launch", {{"XDG_RUNTIME_DIR", "/run/user/7"}})->directory,
            "/run/user/7/disttf");
  EXPECT_EQ(control("launch", {{"XDG_RUNTIME_DIR", "relative"}})->directory.substr(0, 5), "/tmp/");
  EXPECT_EQ(control("launch --control /x/y")->socket, "/x/y");
  EXPECT_FALSE(control("launch")->port.has_value());
  EXPECT_THAT(control("launch --control_port 0")->port, Optional(0));
  EXPECT_FALSE(control("launch --control none").has_value());
  EXPECT_EQ(refusal("launch --control none --control_port 1"),
            "--control_port: 1 is not allowed with --control none");
}

TEST(LaunchSecret, IsMadeWhereNoneIsGiven) {
  using roles::SecretOfRun;
  const auto secret = [](const std::string& line, const Environment& environment = {}) {
    return parse_launch(line, environment).secret;
  };
  const Environment given = {{"DISTTF_SECRET", "a secret of more than 32 characters"}};
  EXPECT_EQ(secret("launch"), SecretOfRun::kMade);
  EXPECT_EQ(secret("train"), SecretOfRun::kMade) << "a run of its own";
  EXPECT_EQ(secret("launch --secret_file /x"), SecretOfRun::kGiven);
  EXPECT_EQ(secret("launch", given), SecretOfRun::kGiven);
  EXPECT_EQ(secret("launch", {{"DISTTF_SECRET", ""}}), SecretOfRun::kMade);
  EXPECT_EQ(secret("launch --insecure"), SecretOfRun::kNone);
  EXPECT_EQ(secret("launch --insecure", given), SecretOfRun::kNone);
  EXPECT_THAT(parse_launch("launch --insecure").task_arguments,
              testing::ElementsAre("--insecure=true"));
  EXPECT_EQ(refusal("launch --insecure --secret_file /x"),
            "--insecure: true is not allowed with --secret_file \"/x\"; give one of them");
}

TEST(LaunchPage, IsThereWhereItIsAskedFor) {
  EXPECT_FALSE(parse_launch("launch").page.has_value());
  const roles::PageOptions page = *parse_launch("launch --page").page;
  EXPECT_EQ(page.host, "127.0.0.1");
  EXPECT_EQ(page.port, 0);
  const roles::LaunchOptions other = parse_launch(
      "launch --page --page_host 0.0.0.0 --page_port 8080 --page_names Train.example.org,b");
  EXPECT_EQ(other.page->host, "0.0.0.0");
  EXPECT_EQ(other.page->port, 8080);
  EXPECT_EQ(other.page->names, (std::vector<std::string>{"train.example.org", "b"}));
  for (const std::string& argument : other.task_arguments) {
    EXPECT_FALSE(argument.starts_with("--page")) << "tasks do not have this flag: " << argument;
  }
  EXPECT_EQ(refusal("launch --page_port 1"), "--page_port: has no effect without --page");
  EXPECT_THAT(refusal("launch --page --page_names http://a"),
              StartsWith("--page_names: \"http://a\" is not a name"));
}

TEST(ChiefsPage, IsTheChiefsAlone) {
  EXPECT_FALSE(parse_task("chief --chief_host=c:1" + kHosts).page.has_value());
  EXPECT_EQ(parse_task("chief --page --page_port 7 --chief_host=c:1" + kHosts).page->port, 7);
  EXPECT_TRUE(parse_task("worker --page --task_index 0" + kHosts).page.has_value());
  EXPECT_EQ(refusal("worker --page --task_index 1" + kHosts),
            "--page: only the chief serves it, and this task is worker:1");
  EXPECT_THAT(refusal("ps --page" + kHosts), testing::HasSubstr("--page"));
  EXPECT_TRUE(
      action_of<RunDriver>("train --existing_servers --page" + kHosts).options.page.has_value());
}

TEST(LaunchMetrics, AreItsOwnAndItsTasksGetOthers) {
  const roles::LaunchOptions options =
      parse_launch("launch --metrics_port 9400 --metrics_host all --metrics_textfile /x/y.prom");
  EXPECT_THAT(options.metrics.port, Optional(9400));
  EXPECT_EQ(options.metrics.host, "all");
  EXPECT_EQ(options.metrics.textfile, "/x/y.prom");
  EXPECT_THAT(options.task_arguments, testing::IsEmpty());
  EXPECT_FALSE(parse_launch("launch").metrics.any());
  EXPECT_EQ(parse_launch("launch").metrics.host, "127.0.0.1");
}

TEST(LaunchMetrics, AreAlsoATasks) {
  const auto metrics = [](const std::string& line) {
    return action_of<RunTask>(line + kHosts).metrics;
  };
  EXPECT_THAT(metrics("ps --metrics_port 0").port, Optional(0));
  EXPECT_EQ(metrics("worker --task_index 1 --metrics_host ::1").host, "::1");
  EXPECT_EQ(metrics("train --job_name worker --task_index 0 --metrics_textfile a.prom").textfile,
            "a.prom");
  EXPECT_THAT(
      action_of<RunDriver>("train --existing_servers --metrics_port 7" + kHosts).metrics.port,
      Optional(7));
  EXPECT_THAT(called_with<roles::TaskServerOptions>(
                  "server --job_name ps --task_index 0 --metrics_port 7" + kHosts)
                  .task_arguments,
              testing::Contains("--metrics_port=7"));
}

TEST(LaunchMetrics, AreServedAtAnAddressOrAll) {
  EXPECT_THAT(refusal("launch --metrics_host example.com"),
              StartsWith("--metrics_host: \"example.com\" is not an IP address of this machine"));
  EXPECT_THAT(refusal("launch --metrics_port 65536"), StartsWith("--metrics_port: 65536 is not"));
}

roles::ManageOptions manage(const std::string& line) {
  return called_with<roles::ManageOptions>(line);
}

TEST(ManageCommand, TakesItsWords) {
  using roles::ManageVerb;
  EXPECT_EQ(manage("status").verb, ManageVerb::kStatus);
  EXPECT_TRUE(manage("status --json").json);
  EXPECT_EQ(manage("endpoints --control /x").socket, "/x");
  EXPECT_EQ(manage("page").verb, ManageVerb::kPage);
  const roles::ManageOptions logs = manage("logs worker-1 -f");
  EXPECT_EQ(logs.verb, ManageVerb::kLogs);
  EXPECT_EQ(logs.task, "worker:1");
  EXPECT_TRUE(logs.follow);
  EXPECT_EQ(manage("pods list").verb, ManageVerb::kPodsList);
  EXPECT_EQ(manage("pods restart ps:0").verb, ManageVerb::kPodsRestart);
  EXPECT_EQ(manage("pods replace chief-0").task, "chief:0");
  EXPECT_THAT(manage("update -w 4").update.workers, Optional(4U));
}

TEST(ManageCommand, TakesFlagsBeforeItsWords) {
  using roles::ManageVerb;
  const roles::ManageOptions pods = manage("pods --control ./ctl restart --json true worker:1");
  EXPECT_EQ(pods.verb, ManageVerb::kPodsRestart);
  EXPECT_EQ(pods.task, "worker:1");
  EXPECT_EQ(pods.socket, "./ctl");
  EXPECT_TRUE(pods.json);
  EXPECT_EQ(manage("pods --control=./ctl list").verb, ManageVerb::kPodsList);
  EXPECT_TRUE(manage("logs -f worker:1").follow);
  EXPECT_EQ(refusal("pods --control ./ctl"),
            "pods: the action is missing; list, restart TASK or replace TASK");
  EXPECT_THAT(refusal("pods list --cntrl ./ctl"), HasSubstr("\"--cntrl\" is not a flag of"));
  EXPECT_THAT(refusal("logs worker:1 --control"), HasSubstr("--control: its value is missing"));
}

TEST(ManageCommand, SaysWhatIsWrongWithThem) {
  EXPECT_EQ(refusal("logs"), "logs: the task is missing; a name such as worker:1 or worker-1");
  EXPECT_EQ(refusal("logs me"),
            "logs: \"me\" is not a task's name; one is a job and a number, as in worker:1 or "
            "worker-1");
  EXPECT_EQ(refusal("pods"), "pods: the action is missing; list, restart TASK or replace TASK");
  EXPECT_EQ(refusal("pods kill ps:0"), "pods: \"kill\" is not list, restart TASK or replace TASK");
  EXPECT_EQ(refusal("pods restart"),
            "pods restart: the task is missing; a name such as worker:1 or worker-1");
  EXPECT_EQ(refusal("update"), "update: the change is missing; --workers N or --options FILE");
  EXPECT_THAT(refusal("update --workers 0"), StartsWith("--workers: 0 is not"));
  EXPECT_THAT(refusal("update --options /none"), StartsWith("--options: \"/none\""));
  EXPECT_THAT(refusal("page worker:1"), HasSubstr("\"worker:1\" is not expected here"));
  EXPECT_THAT(refusal("status worker:1"), HasSubstr("\"worker:1\" is not expected here"));
}

// launch [FLAGS] -- COMMAND: the parsed line, and the lines that are rejected before anything runs.

roles::ProgramOptions parse_programs(const std::string& line) {
  return called_with<roles::ProgramOptions>(line);
}

TEST(LaunchCommand, IsAllThatFollowsTheTwoDashes) {
  const roles::ProgramOptions options =
      parse_programs("launch -w 3 -s 0 -- /bin/sh -c {job_name} --help -- --train-steps");
  EXPECT_EQ(options.workers, 3U);
  EXPECT_EQ(options.ps, 0U);
  EXPECT_THAT(options.command,
              ElementsAre("/bin/sh", "-c", "{job_name}", "--help", "--", "--train-steps"));
  EXPECT_THAT(options.initializer, IsEmpty());
  EXPECT_FALSE(options.worker_logs.has_value());
}

TEST(LaunchCommand, ShowsTheWorkersThatAreAskedFor) {
  EXPECT_THAT(parse_programs("launch -w 3 --worker-logs 0,2 -- /bin/sh").worker_logs,
              testing::Optional(ElementsAre(0U, 2U)));
  EXPECT_FALSE(parse_programs("launch --worker_logs * -- /bin/sh").worker_logs.has_value());
  for (const std::string wrong : {"2", "all", "0,", "-1", "0,2"}) {
    EXPECT_EQ(
        refusal("launch --worker_logs=" + wrong + " -- /bin/sh"),
        "--worker_logs: \"" + wrong + "\" is not *, nor workers between commas, each from 0 to 1");
  }
}

TEST(LaunchCommand, HasASecretUnlessItIsToHaveNone) {
  EXPECT_EQ(parse_programs("launch -- /bin/sh").secret, roles::SecretOfRun::kMade);
  EXPECT_EQ(parse_programs("launch --insecure -- /bin/sh").secret, roles::SecretOfRun::kNone);
}

TEST(LaunchCommand, MustBeThere) {
  EXPECT_EQ(refusal("launch -w 2 --"), "launch: COMMAND is missing after --");
  EXPECT_EQ(
      refusal("launch -- disttf-is-no-such-program"),
      "COMMAND: \"disttf-is-no-such-program\" is not an executable program; it is not in PATH");
  EXPECT_EQ(refusal("launch -- /etc/passwd"),
            "COMMAND: \"/etc/passwd\" is not an executable program");
  EXPECT_THAT(refusal("launch --finalizer /none -- /bin/sh"),
              StartsWith("--finalizer: \"/none\" is not an executable program"));
}

TEST(LaunchCommand, TellsAWrongPlaceholder) {
  EXPECT_THAT(refusal("launch -- /bin/sh {worker_index}"),
              StartsWith("COMMAND: \"{worker_index}\" in \"{worker_index}\"; allowed are"));
  EXPECT_THAT(refusal("launch --initializer=/bin/{x} -- /bin/sh"),
              StartsWith("--initializer: \"{x}\""));
}

TEST(LaunchCommand, NeedsAWorker) {
  EXPECT_EQ(refusal("launch -w 0 -- /bin/sh"),
            "--workers: must be at least 1; the launch exits when the workers do (got 0)");
}

TEST(LaunchCommand, RefusesFlagsWithoutEffect) {
  EXPECT_EQ(refusal("launch --train_steps 5 -- /bin/sh"),
            "--train_steps: has no effect on a COMMAND; put the COMMAND's own flags after --");
  EXPECT_THAT(refusal("launch --chief -- /bin/sh"), HasSubstr("--chief: has no effect"));
  EXPECT_EQ(refusal("launch --worker_logs 0"), "--worker_logs: needs a COMMAND after --");
}

TEST(LaunchCommand, MayHaveGpusForEachWorker) {
  const Environment two = {{"CUDA_VISIBLE_DEVICES", "3,5"}, {"CUDA_DEVICE_ORDER", "x"}};
  const auto gpus = [&two](const std::string& line) {
    return called_with<roles::ProgramOptions>(line, two).gpus;
  };
  EXPECT_EQ(gpus("launch -- /bin/sh").per_worker, 0U);
  const roles::GpuOptions options = gpus("launch --gpus_per_worker 1 -- /bin/sh");
  EXPECT_EQ(options.per_worker, 1U);
  EXPECT_THAT(options.list.devices, ElementsAre("3", "5"));
  EXPECT_TRUE(options.has_device_order);
  EXPECT_FALSE(options.has_cublas_workspace);
  EXPECT_TRUE(gpus("launch -w 3 --gpus_per_worker 2 --share_gpus -- /bin/sh").share);
  EXPECT_THAT(refusal("launch -w 3 --gpus_per_worker 2 -- /bin/sh", two),
              StartsWith("--gpus_per_worker: 3 trainers with 2 GPUs each need 6, but there are 2"));
  EXPECT_EQ(refusal("launch --share_gpus -- /bin/sh", two),
            "--share_gpus: true has no effect without --gpus_per_worker");
  EXPECT_EQ(refusal("launch --gpus_per_worker 1", two),
            "--gpus_per_worker: needs a COMMAND after --");
  EXPECT_THAT(refusal("launch --gpus_per_worker 1 -- /bin/sh", {{"CUDA_VISIBLE_DEVICES", "1,1"}}),
              StartsWith("CUDA_VISIBLE_DEVICES: names the GPU \"1\" twice"));
}

TEST(LaunchCommand, LeavesTrainingAPs) {
  EXPECT_EQ(refusal("launch --ps 0"), "--ps: must be at least 1 (got 0)");
}

}  // namespace
}  // namespace disttf
