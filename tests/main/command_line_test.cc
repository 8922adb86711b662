// The action that a command line selects, and its options.
#include "main/command_line.h"

#include <gmock/gmock.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "main/commands/registry.h"
#include "main/environment.h"
#include "math/kernels.h"
#include "model/predict/predict_command.h"
#include "roles/servers/shell/task_server.h"
#include "run/outcome.h"
#include "run/run_config.h"
#include "storage/checkpoint/shell/checkpoint_command.h"
#include "storage/store/shell/store_command.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Print print(const std::string& line) { return action_of<Print>(line); }

// ---- Printing ----

TEST(CommandLine, PrintsHelpWithAllCommands) {
  for (const char* line : {"--help", "-h", "help"}) {
    const Print help = print(line);
    EXPECT_EQ(help.exit_code, roles::kDone);
    for (const char* command : {"launch", "ps", "worker", "chief", "train", "server", "plus",
                                "download", "checkpoint", "model", "data", "render"}) {
      EXPECT_THAT(help.text, HasSubstr(std::string("\n  ") + command + " ")) << line;
    }
  }
}

TEST(CommandLine, HelpOfACommandIsHadEitherWay) {
  for (const CommandRow& row : commands()) {
    const std::string name = row.name;
    EXPECT_EQ(print("help " + name).text, print(name + " --help").text);
    EXPECT_EQ(print("help " + name).exit_code, roles::kDone);
  }
  EXPECT_EQ(print("help pods restart").text, print("pods --help").text);
  EXPECT_EQ(print("help help").text, print("--help").text);
  EXPECT_THAT(refusal("help dance"), StartsWith("\"dance\" is not a command; one of launch, "));
}

TEST(CommandLine, WithoutAnythingIsAUsageErrorWithTheHelp) {
  EXPECT_EQ(print("").exit_code, roles::kUsage);
  EXPECT_EQ(print("").text, print("--help").text);
}

TEST(CommandLine, PrintsACommandsHelp) {
  EXPECT_EQ(print("worker --help").exit_code, roles::kDone);
  EXPECT_THAT(print("worker --help").text, HasSubstr("--task_index"));
  EXPECT_THAT(print("launch -h").text, HasSubstr("--workers"));
}

// A terminal has 80 columns and 24 lines.
TEST(CommandLine, AHelpFitsThreeScreensAndNamesWhatItLeavesOut) {
  for (const CommandRow& row : commands()) {
    const std::string name = row.name;
    const std::string help = print(name + " --help").text;
    std::istringstream lines(help);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
      count += std::max<std::size_t>((line.size() + 79) / 80, 1);
    }
    // (What `render` takes as its word stands below the flags.)
    EXPECT_LE(count, std::size_t{3} * 24 + (name == "render" ? 20 : 0)) << help;
    EXPECT_THAT(help, HasSubstr("\nExamples:\n  " + std::string(row.examples.front().line) + "\n"));
    const CommandApp app(row);
    const std::string all = print(name + " --help-all").text;
    EXPECT_EQ(all, print("help " + name + " --help-all").text);
    std::size_t left_out = 0;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group().empty() || !option->nonpositional()) {
        continue;
      }
      const std::string entry = "\n  " + option->get_name(false, true);
      EXPECT_THAT(all, HasSubstr(entry));
      left_out += help.find(entry) == std::string::npos ? 1U : 0U;
    }
    EXPECT_EQ(left_out > 0, help.find(" --help-all shows more flags:") != std::string::npos);
  }
}

TEST(CommandLine, TheHelpOfLaunchShowsTheUsualFlags) {
  const std::string help = print("launch --help").text;
  for (const char* usual : {"--workers", "--ps", "--model", "--data", "--train_steps",
                            "--learning_rate", "--train_dir", "--page"}) {
    EXPECT_THAT(help, HasSubstr(usual));
  }
  EXPECT_THAT(help, Not(HasSubstr("--augment_shear")));
  EXPECT_THAT(help, HasSubstr("Augmentation ("));
  EXPECT_THAT(print("launch --help-all").text, HasSubstr("--augment_shear"));
}

TEST(CommandLine, RefusesAnUnknownCommandWithTheKnownOnes) {
  EXPECT_EQ(refusal("dance"),
            "\"dance\" is not a command; one of launch, ps, worker, chief, evaluator, train, "
            "server, plus, "
            "download, checkpoint, model, data, resolve, doctor, verify, render, predict, serve, "
            "healthcheck, export, import, ls, cp, plot, show, completion, licenses, "
            "status, top, trace, page, endpoints, logs, pods, update");
}

// ---- Servers ----

TEST(CommandLine, DrivesServersAsAChiefThatTheListsDoNotName) {
  const auto run = action_of<RunDriver>("train --existing_servers --seed 3" + kHosts);
  EXPECT_EQ(run.options.task.cluster.ps.size(), 1U);
  EXPECT_TRUE(run.options.task.cluster.chief.empty());
  EXPECT_EQ(run.options.config.trainers, 3U);
  EXPECT_EQ(run.options.config.seed, 3U);
}

TEST(CommandLine, RefusesADriverThatIsOneOfTheTasks) {
  EXPECT_EQ(refusal("train --existing_servers --job_name worker" + kHosts),
            "--job_name: not allowed with --existing_servers, which is the chief itself and drives "
            "all listed tasks");
  EXPECT_THAT(refusal("train --existing_servers"), HasSubstr("--ps_hosts: missing"));
}

// The location of the data is the server's setting; peers and timeouts are the driver's.
TEST(CommandLine, HandsAServersOwnFlagsToTheTasksThatItRuns) {
  const auto options = called_with<roles::TaskServerOptions>(
      "server --job_name ps --data_dir d --transport tcp --log_level debug "
      "--peer_timeout 5 --heartbeat_timeout 6" +
      kHosts);
  EXPECT_THAT(options.task_arguments,
              testing::UnorderedElementsAre("--data_dir=d", "--insecure=true", "--transport=tcp",
                                            "--log_level=debug"));
}

// ---- A task ----

TEST(CommandLine, GivesATaskItsConfiguration) {
  const roles::RunConfig config =
      parse_task(
          "worker --task_index 1 --model softmax --optimizer momentum --learning_rate 0.25 "
          "--learning_rate_decay none --momentum 0.5 --batch_size 7 --train_steps 9 --seed 3 "
          "--eval_every 4 --replicas_to_aggregate 1 --isa generic --hidden_units 5,6" +
          kHosts)
          .config;
  EXPECT_EQ(config.model.kind, math::ModelKind::kSoftmax);
  EXPECT_THAT(config.model.hidden, ElementsAre(5, 6));
  EXPECT_EQ(config.optimizer.kind, math::OptimizerKind::kMomentum);
  EXPECT_EQ(config.optimizer.learning_rate, 0.25F);
  EXPECT_EQ(config.rate_decay, math::RateDecay::kNone);
  EXPECT_EQ(config.optimizer.momentum, 0.5F);
  EXPECT_EQ(config.batch_size, 7U);
  EXPECT_EQ(config.train_steps, 9U);
  EXPECT_EQ(config.seed, 3U);
  EXPECT_EQ(config.eval_every, 4U);
  EXPECT_EQ(config.replicas_to_aggregate, 1U);
  EXPECT_EQ(config.isa, math::Isa::kGeneric);
  EXPECT_EQ(config.compute_dtype, math::ComputeDtype::kF32);
  EXPECT_EQ(config.trainers, 2U);
  EXPECT_TRUE(config.sync_replicas);
}

TEST(CommandLine, GivesATaskItsAsyncConfiguration) {
  const roles::RunConfig config =
      parse_task("worker --task_index 0 --sync_replicas False --max_staleness 0" + kHosts).config;
  EXPECT_FALSE(config.sync_replicas);
  EXPECT_EQ(config.max_staleness, 0U);
}

TEST(CommandLine, TheDefaultLearningRateIsTheOptimizers) {
  for (const auto optimizer : {math::OptimizerKind::kSgd, math::OptimizerKind::kAdagrad}) {
    const std::string name(math::optimizer_name(optimizer));
    EXPECT_EQ(parse_task("ps --optimizer " + name + kHosts).config.optimizer.learning_rate,
              math::default_learning_rate(optimizer));
  }
}

TEST(CommandLine, TheDefaultLearningRateOfConvolutionsIsATenth) {
  for (const char* model : {"lenet", "cnn"}) {
    const auto config = parse_task(std::string("ps --model ") + model + kHosts).config;
    EXPECT_EQ(config.optimizer.learning_rate, 0.001F) << model;
  }
}

TEST(CommandLine, GivesATaskItsOtherOptions) {
  const roles::TrainerOptions options = parse_task(
      "worker --task_index 1 --log_every 5 --print_weights_hash --debug_delay_ms 30 "
      "--start_timeout 1 --peer_timeout 2 --worker_timeout 3 --heartbeat_timeout 4 "
      "--listen_fd=7 --progress_fd=8 --chaos_frames=9,10 --transport tcp --threads 3" +
      kHosts);
  EXPECT_EQ(options.task.threads, 3U);
  EXPECT_EQ(options.log_every, 5U);
  EXPECT_TRUE(options.print_weights_hash);
  EXPECT_EQ(options.max_injected_delay, milliseconds(30));
  EXPECT_EQ(options.task.timeouts.start, seconds(1));
  EXPECT_EQ(options.task.timeouts.peer, seconds(2));
  EXPECT_EQ(options.task.timeouts.worker, seconds(3));
  EXPECT_EQ(options.task.timeouts.heartbeat_timeout, seconds(4));
  EXPECT_EQ(options.task.faults.seed, 9U);
  EXPECT_EQ(options.task.faults.per_1000, 10U);
  EXPECT_EQ(options.task.transport, roles::Transport::kTcp);
  EXPECT_EQ(options.task.listen_fd, 7);
  EXPECT_EQ(options.progress_fd, 8);
}

TEST(CommandLine, GivesATaskItsData) {
  const Environment environment = {{"http_proxy", "http://a:1"},
                                   {"HTTPS_PROXY", "http://b:1"},
                                   {"no_proxy", "c"},
                                   {"NO_PROXY", "d"}};
  const roles::DataOptions data =
      parse_task(
          "worker --task_index 1 --dataset digits --data_dir /data --data_url "
          "http://a/,http://b/ --ca_file ca.pem --download_timeout 9" +
              kHosts,
          environment)
          .data;
  EXPECT_EQ(data.dataset, roles::find_dataset("digits"));
  EXPECT_EQ(data.directory, "/data");
  EXPECT_THAT(data.mirrors, ElementsAre("http://a/", "http://b/"));
  EXPECT_EQ(data.ca_file, "ca.pem");
  EXPECT_EQ(data.timeout, seconds(9));
  EXPECT_EQ(data.proxy.http_proxy, "http://a:1");
  EXPECT_EQ(data.proxy.https_proxy, "http://b:1");
  EXPECT_EQ(data.proxy.no_proxy, "c") << "lower case comes first, as with curl";
}

TEST(CommandLine, EveryProcessIsAnotherIncarnation) {
  EXPECT_NE(parse_task("ps" + kHosts).task.incarnation, parse_task("ps" + kHosts).task.incarnation);
}

TEST(CommandLine, RemembersWhichFlagsTheUserWrote) {
  EXPECT_THAT(parse_task("worker --task_index 1 --batch-size 100 --sync_replica True" + kHosts)
                  .explicit_flags,
              testing::UnorderedElementsAre("task_index", "ps_hosts", "worker_hosts", "batch_size",
                                            "sync_replicas", "insecure"));
}

TEST(CommandLine, DoesNotHoldAgainstTheChiefWhatItOnlyKnowsLater) {
  EXPECT_THAT(parse_task("worker --task_index 1 --isa auto --dataset auto" + kHosts).explicit_flags,
              Not(testing::AnyOf(Contains("isa"), Contains("dataset"))));
  EXPECT_THAT(parse_task("worker --task_index 1 --isa generic" + kHosts).explicit_flags,
              Contains("isa"));
}

TEST(CommandLine, RefusesAnInstructionSetThatTheCpuLacks) {
  EXPECT_THAT(
      refusal("worker --task_index 0 --isa mmx" + kHosts),
      AllOf(StartsWith("--isa: \"mmx\" is not one that this CPU has: auto"), HasSubstr("generic")));
}

TEST(CommandLine, RefusesFlagsThatContradictEachOther) {
  EXPECT_EQ(refusal("worker --task_index 0 --max_staleness 3" + kHosts),
            "--max_staleness: 3 is not allowed without --sync_replicas=false");
  EXPECT_EQ(refusal("worker --task_index 0 --replicas_to_aggregate 3" + kHosts),
            "--replicas_to_aggregate: 3 is not from 0 to the number of trainers, 2");
  EXPECT_EQ(refusal("launch --hidden_units 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"),
            "--hidden_units: 17 layers is not from 1 to 16 layers");
}

TEST(CommandLine, TakesCheckpointsFromTheFlags) {
  const roles::CheckpointOptions checkpoint =
      parse_task(
          "worker --task_index 0 --train_dir d --save_steps 7 --save_secs 0 "
          "--max_to_keep 2" +
          kHosts)
          .checkpoint;
  EXPECT_EQ(checkpoint.train_dir, "d");
  EXPECT_EQ(checkpoint.save_steps, 7U);
  EXPECT_EQ(checkpoint.save_secs.count(), 0);
  EXPECT_EQ(checkpoint.max_to_keep, 2U);
  EXPECT_FALSE(checkpoint.sharded);
}

TEST(CommandLine, TakesShardedCheckpointsWithADirectoryOnly) {
  const roles::TrainerOptions options =
      parse_task("ps --task_index 0 --train_dir d --sharded_checkpoint" + kHosts);
  EXPECT_TRUE(options.checkpoint.sharded);
  EXPECT_EQ(options.checkpoint.train_dir, "d");
  for (const std::string& line :
       {"worker --task_index 0 --sharded_checkpoint" + kHosts, "ps --sharded_checkpoint" + kHosts,
        std::string("launch --sharded_checkpoint")}) {
    EXPECT_EQ(refusal(line),
              "--sharded_checkpoint: true is not allowed without --train_dir, the directory that "
              "chief and ps share");
  }
  EXPECT_FALSE(parse_task("ps --sharded_checkpoint=false" + kHosts).checkpoint.sharded);
}

// ---- The log ----

TEST(CommandLine, NamesTheTaskInTheLog) {
  const roles::LogOptions log = parse("worker --task_index 1" + kHosts).log;
  EXPECT_EQ(log.task, "worker:1");
  EXPECT_TRUE(log.name_task);
  EXPECT_EQ(log.level, roles::LogLevel::kInfo);
  EXPECT_EQ(log.format, roles::LogFormat::kText);
}

TEST(CommandLine, LeavesTheNameInTheLogToLaunch) {
  EXPECT_FALSE(parse("worker --task_index 1 --listen_fd=3" + kHosts).log.name_task);
}

TEST(CommandLine, SetsTheLogUpAsItIsTold) {
  const roles::LogOptions log = parse("ps --log_level off --log_format json" + kHosts).log;
  EXPECT_EQ(log.level, roles::LogLevel::kOff);
  EXPECT_EQ(log.format, roles::LogFormat::kJson);
}

// ---- Other actions ----

TEST(CommandLine, AnEvaluatorAsksThePsOrReadsCheckpoints) {
  const Environment environment = {{"TF_CONFIG", R"({"cluster":{"ps":["p:1"],"worker":["w:1"]},
                        "task":{"type":"evaluator","index":0}})"}};
  const auto of_ps = action_of<RunEvaluator>("train --insecure --evaluator_secs=3", environment);
  EXPECT_TRUE(of_ps.options.trainer.checkpoint.train_dir.empty());
  EXPECT_EQ(of_ps.options.trainer.task.cluster.ps.size(), 1U);
  EXPECT_EQ(of_ps.options.every, std::chrono::seconds(3));
  const auto of_files = action_of<RunEvaluator>("evaluator --train_dir /runs/1 --keep_best loss");
  EXPECT_EQ(of_files.options.trainer.checkpoint.train_dir, "/runs/1");
  EXPECT_EQ(of_files.options.keep_best, roles::BestMetric::kLoss);
  EXPECT_TRUE(of_files.options.trainer.task.cluster.ps.empty());
  const auto of_lists = action_of<RunEvaluator>("evaluator" + kHosts);
  EXPECT_EQ(of_lists.options.trainer.task.self.job, net::Job::kEvaluator);
}

TEST(CommandLine, ACertificateAndItsKeyBelongTogether) {
  EXPECT_EQ(refusal("serve models --tls_cert c.pem"),
            "--tls_key: missing; it belongs to --tls_cert \"c.pem\"");
  EXPECT_EQ(refusal("serve models --tls_key k.pem"),
            "--tls_cert: missing; it belongs to --tls_key \"k.pem\"");
  EXPECT_EQ(refusal("serve models --tls_cert c.pem --tls_key k.pem"), "(accepted)");
}

TEST(CommandLine, DownloadOnlyDownloadsWhateverTheCommand) {
  for (const std::string line :
       {"download", "--download_only", "worker --download_only=True", "launch --download-only"}) {
    EXPECT_EQ(called_with<roles::DataOptions>(line + " --data_dir /d").directory, "/d") << line;
  }
}

TEST(CommandLine, ARenderedFileNamesTheResultLineOfItsDataSet) {
  EXPECT_THAT(print("render compose --insecure").text, HasSubstr("\"MNIST accuracy: ...\""));
  EXPECT_THAT(print("render compose --insecure --dataset digits").text,
              HasSubstr("\"Digits accuracy: ...\""));
}

// ---- launch ----

TEST(CommandLine, LaunchStartsWhatItIsTold) {
  const roles::LaunchOptions options = parse_launch("launch --ps 3 -w 4 --chief");
  EXPECT_EQ(options.ps, 3U);
  EXPECT_EQ(options.workers, 4U);
  EXPECT_TRUE(options.chief);
  EXPECT_THAT(options.task_arguments, testing::IsEmpty()) << "they are launch's own";
}

TEST(CommandLine, LaunchMayDoWithAChiefAlone) {
  EXPECT_EQ(parse_launch("launch --workers 0 --chief").workers, 0U);
  EXPECT_EQ(refusal("launch --workers 0"), "--workers: must be at least 1 without --chief (got 0)");
}

TEST(CommandLine, LaunchStartsTasksAgainAsItIsTold) {
  const roles::RestartOptions usual = parse_launch("launch").restart;
  EXPECT_TRUE(usual.on_failure);
  EXPECT_EQ(usual.max_restarts, 10U);
  const roles::LaunchOptions options = parse_launch("launch --restart never --max-restarts 0");
  EXPECT_FALSE(options.restart.on_failure);
  EXPECT_EQ(options.restart.max_restarts, 0U);
  EXPECT_THAT(options.task_arguments, testing::IsEmpty());
  EXPECT_TRUE(parse_launch("launch --restart=on-failure").restart.on_failure);
  EXPECT_TRUE(parse_launch("train").restart.on_failure) << "a local run restarts like launch";
  EXPECT_EQ(refusal("launch --restart always"),
            "--restart: \"always\" is not on-failure or never (disttf launch --help-all lists the "
            "flags)");
}

TEST(CommandLine, LaunchChecksTheRunBeforeItStartsAnything) {
  EXPECT_EQ(refusal("launch --workers 2 --replicas_to_aggregate 3"),
            "--replicas_to_aggregate: 3 is not from 0 to the number of trainers, 2");
  EXPECT_EQ(parse_launch("launch --workers 2 --chief --replicas_to_aggregate 3").workers, 2U);
}

TEST(CommandLine, TrainWithoutAClusterIsALocalLaunch) {
  for (const char* tf_config :
       {"", "{}", R"({"cluster":{},"task":{"type":"worker","index":0}})",
        R"({"cluster":{"worker":["w:1"]},"task":{"type":"worker","index":0}})"}) {
    const roles::LaunchOptions options =
        parse_launch("train --train_steps 9", {{"TF_CONFIG", tf_config}});
    EXPECT_EQ(options.ps, 1U) << tf_config;
    EXPECT_EQ(options.workers, 1U) << tf_config;
    EXPECT_FALSE(options.chief) << tf_config;
    EXPECT_THAT(options.task_arguments, ElementsAre("--train_steps=9"));
  }
}

TEST(CommandLine, LaunchTakesNoNoticeOfTfConfig) {
  EXPECT_EQ(parse_launch("launch", {{"TF_CONFIG", "not even JSON"}}).workers, 2U);
}

// A worker that gets launch's flags runs like one with the same flags on its own command line.
class HandedOn : public testing::TestWithParam<std::string> {};

TEST_P(HandedOn, ArgumentsMeanTheSameToAChild) {
  const std::string flags = " " + GetParam() + " ";
  const roles::TrainerOptions direct = parse_task("worker --task_index 1" + kHosts + flags);
  std::string line = "worker --task_index=1" + kHosts;
  for (const std::string& argument :
       parse_launch("launch --workers 2 --ps 1" + flags).task_arguments) {
    line += " " + argument;
  }
  const roles::TrainerOptions child = parse_task(line);
  EXPECT_EQ(to_json(child.config), to_json(direct.config));
  EXPECT_EQ(child.explicit_flags, direct.explicit_flags);
  EXPECT_EQ(child.data.mirrors, direct.data.mirrors);
  EXPECT_EQ(child.data.directory, direct.data.directory);
  EXPECT_EQ(child.checkpoint.train_dir, direct.checkpoint.train_dir);
  EXPECT_EQ(child.checkpoint.sharded, direct.checkpoint.sharded);
  EXPECT_EQ(child.log_every, direct.log_every);
  EXPECT_EQ(child.print_weights_hash, direct.print_weights_hash);
  EXPECT_EQ(child.max_injected_delay, direct.max_injected_delay);
  EXPECT_EQ(child.task.faults.seed, direct.task.faults.seed);
  EXPECT_EQ(child.task.faults.per_1000, direct.task.faults.per_1000);
  EXPECT_EQ(child.task.timeouts.start, direct.task.timeouts.start);
}

INSTANTIATE_TEST_SUITE_P(
    Flags, HandedOn,
    testing::Values("", "--train_steps 9 --batch_size=010 --seed 3", "--hidden_units 128,64",
                    "--hidden_units 128 --model mlp", "--sync_replicas False --max_staleness 2",
                    "--sync_replica=false", "--print_weights_hash", "--print_weights_hash false",
                    "--data_url http://a/,http://b/ --data_dir /d",
                    "--data_url http://a/ --data_url http://b/",
                    "--learning_rate 1e-3 --optimizer sgd",
                    "--learning-rate-decay none --momentum 0.25", "--isa auto", "--isa generic",
                    "--train_dir /d --sharded_checkpoint",
                    "--start_timeout 5 --debug_delay_ms 7 --log_every 0 --log_level debug",
                    "--chaos_frames 7,20", "--transport shm"));

TEST(CommandLine, ChaosIsForLaunchAndForTheFramesOfItsTasks) {
  const roles::LaunchOptions options = parse_launch("launch --chaos 7,20");
  ASSERT_TRUE(options.chaos);
  EXPECT_EQ(options.chaos->seed, 7U);
  EXPECT_EQ(options.chaos->per_1000, 20U);
  EXPECT_THAT(options.task_arguments, testing::ElementsAre("--chaos_frames=7,20"));
}

TEST(CommandLine, ChaosLeavesTheFramesToAFlagOfTheirOwn) {
  EXPECT_THAT(parse_launch("launch --chaos 7,20 --chaos_frames 1,0").task_arguments,
              testing::ElementsAre("--chaos_frames=1,0"));
}

TEST(CommandLine, ChaosNeedsTasksThatAreStartedAgain) {
  EXPECT_THROW(static_cast<void>(parse_launch("launch --chaos 7,20 --restart never")),
               std::invalid_argument);
}

TEST(CommandLine, LaunchHandsOnWhatItsConfigFileSaysButNotTheFile) {
  const std::string path = testing::TempDir() + "disttf_launch_hands_on.toml";
  std::ofstream(path) << "train_steps = 9\nhidden_units = [3, 4]\nworkers = 5\n";
  const roles::LaunchOptions options = parse_launch("launch --config " + path);
  std::filesystem::remove(path);
  EXPECT_EQ(options.workers, 5U);
  EXPECT_THAT(options.task_arguments,
              testing::UnorderedElementsAre("--train_steps=9", "--hidden_units=3,4"));
}

// ---- The environment ----

TEST(EnvironmentNames, DoNotIncludeTheProxyThatAnyClientOfACgiProgramCanSet) {
  const auto names = environment_names();
  const auto holds = [&](std::string_view name) {
    return std::any_of(names.begin(), names.end(), [&](const char* each) { return name == each; });
  };
  EXPECT_TRUE(holds("TF_CONFIG"));
  EXPECT_TRUE(holds("http_proxy"));
  EXPECT_FALSE(holds("HTTP_PROXY"));
}

// ---- Checkpoints ----

roles::CheckpointCommand checkpoint(const std::string& line) {
  return called_with<roles::CheckpointCommand>(line);
}

TEST(CommandLine, ACheckpointIsListedVerifiedOrShown) {
  EXPECT_EQ(checkpoint("checkpoint ls dir").action, roles::CheckpointAction::kList);
  EXPECT_EQ(checkpoint("checkpoint verify dir").action, roles::CheckpointAction::kVerify);
  EXPECT_EQ(checkpoint("checkpoint show dir").action, roles::CheckpointAction::kShow);
  EXPECT_EQ(checkpoint("checkpoint show a/b/ --log_level=off").directory, "a/b/");
  EXPECT_EQ(parse("checkpoint show a --log_level=off").log.level, roles::LogLevel::kOff);
}

TEST(CommandLine, WrongWordsBehindCheckpointAreTold) {
  EXPECT_THAT(refusal("checkpoint"), StartsWith("checkpoint: the action is missing; ls, verify"));
  EXPECT_THAT(refusal("checkpoint rm dir"),
              StartsWith("checkpoint: \"rm\" is not ls, verify or show"));
  EXPECT_THAT(refusal("checkpoint ls"), StartsWith("checkpoint ls: the directory is missing"));
  EXPECT_THAT(refusal("checkpoint ls --log_level=off"),
              StartsWith("checkpoint ls: the directory is missing"));
  EXPECT_THAT(refusal("checkpoint ls a b"), StartsWith("\"b\" is not expected here"));
  EXPECT_THAT(refusal("checkpoint ls a --ps 2"), StartsWith("\"--ps\" is not a flag of"));
}

TEST(CommandLine, CheckpointHasAHelpWithItsActions) {
  for (const char* line : {"checkpoint --help", "checkpoint -h", "checkpoint ls --help"}) {
    EXPECT_EQ(print(line).exit_code, roles::kDone);
    for (const char* action : {"ls ", "verify ", "show "}) {
      EXPECT_THAT(print(line).text, HasSubstr(std::string("\n") + action)) << line;
    }
  }
}

// Each command with words takes them from behind its flags, too.
TEST(CommandLine, TakesFlagsBeforeTheWordsOfACommand) {
  EXPECT_EQ(checkpoint("checkpoint --log_level off verify dir").directory, "dir");
  const auto copy = called_with<roles::CopyCommand>("cp --files_at_once 3 a b");
  EXPECT_EQ(copy.to, "b");
  EXPECT_EQ(copy.threads, 3U);
  const auto predict = called_with<roles::PredictOptions>("predict --top 3 dir a.png --json -");
  EXPECT_EQ(predict.model, "dir");
  EXPECT_EQ(predict.inputs, (std::vector<std::string>{"a.png", "-"}));
  EXPECT_EQ(predict.top, 3U);
  // What follows -- is the COMMAND.
  EXPECT_EQ(print("render --workers 2 --insecure compose --program --image i -- a --b c").text,
            print("render compose --workers 2 --insecure --program --image i -- a --b c").text);
}

}  // namespace
}  // namespace disttf
