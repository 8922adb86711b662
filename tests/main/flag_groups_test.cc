// worker|chief|train|ps|launch --program -- COMMAND: the parsed lines, and those that are rejected
// before anything runs.
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "main/command_line.h"
#include "main/verify/verify.h"
#include "roles/launch/shell/own_program.h"
#include "roles/launch/shell/program_launcher.h"
#include "run/outcome.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::string kCommand = " -- /bin/sh -c x";

roles::OwnProgramOptions parse_program(const std::string& line,
                                       const Environment& environment = {}) {
  return called_with<roles::OwnProgramOptions>(line, environment);
}

TEST(ProgramFlags, ATrainerIsATaskAndItsProgram) {
  const roles::OwnProgramOptions options =
      parse_program("worker --task_index 1 --program" + kHosts + "-- /bin/sh {task_index} -- --x");
  EXPECT_EQ(net::task_name(options.self), "worker:1");
  EXPECT_EQ(options.program.file, "/bin/sh");
  EXPECT_THAT(options.program.words, ElementsAre("/bin/sh", "1", "--", "--x"));
  EXPECT_TRUE(options.has_spare);
  EXPECT_EQ(options.end_timeout, std::chrono::seconds(600));
}

TEST(ProgramFlags, TheTaskHasTheSameWordsButForTheCommand) {
  const std::string line = "worker --task_index=1 --program --train_steps=7 --listen_fd=5" + kHosts;
  const roles::OwnProgramOptions options = parse_program(line + kCommand);
  EXPECT_EQ(options.task_words, words(line));
  EXPECT_EQ(options.listen_fd, 5);
  // As its supervisor starts it.
  const roles::TrainerOptions task = parse_task(line + "--program_fd=9");
  EXPECT_EQ(task.program_fd, 9);
  EXPECT_EQ(task.config.train_steps, 7U);
  EXPECT_EQ(parse_task("worker --task_index 1" + kHosts).program_fd, -1);
}

TEST(ProgramFlags, TheTaskGetsItsTfConfig) {
  const std::string config =
      R"({"cluster":{"ps":["p:1"],"worker":["w:1"]},"task":{"type":"worker","index":0}})";
  const roles::OwnProgramOptions options =
      parse_program("--program --insecure" + kCommand, {{"TF_CONFIG", config}});
  EXPECT_EQ(net::task_name(options.self), "worker:0");
  EXPECT_THAT(options.task_words, ElementsAre("--program", "--insecure"));
  EXPECT_THAT(options.task_variables, ElementsAre("TF_CONFIG=" + config));
}

TEST(ProgramFlags, APsIgnoresThem) {
  const roles::TrainerOptions ps = parse_task("ps --program" + kHosts + kCommand);
  EXPECT_EQ(ps.task.self.job, net::Job::kPs);
}

TEST(ProgramFlags, OneLineServesAllTasks) {
  const std::string line = "train --program --task_index 0" + kHosts;
  EXPECT_EQ(parse_task(line + "--job_name ps" + kCommand).task.self.job, net::Job::kPs);
  EXPECT_EQ(net::task_name(parse_program(line + "--job_name worker" + kCommand).self), "worker:0");
}

TEST(ProgramFlags, LaunchPassesThemToItsTrainers) {
  const roles::LaunchOptions options = parse_launch(
      "launch --program --program_spare=false --program_timeout_secs 7 --check_gradients 4 "
      "--program_end_timeout_secs 0 --train_steps 5" +
      kCommand);
  EXPECT_THAT(options.program_command, ElementsAre("/bin/sh", "-c", "x"));
  EXPECT_THAT(options.program_arguments,
              ElementsAre("--program", "--program_spare=false", "--program_timeout_secs=7",
                          "--program_end_timeout_secs=0", "--check_gradients=4"));
  EXPECT_THAT(options.task_arguments, ElementsAre("--train_steps=5"));
  // An update of the workers keeps the program.
  EXPECT_EQ(options.reconsider({.workers = 3, .options = {}}).program_command,
            options.program_command);
}

TEST(ProgramFlags, TrainWithoutAClusterLaunchesIt) {
  const roles::LaunchOptions options = parse_launch("train --program" + kCommand);
  EXPECT_EQ(options.workers, 1U);
  EXPECT_THAT(options.program_command, ElementsAre("/bin/sh", "-c", "x"));
  EXPECT_THAT(parse_launch("train").program_arguments, IsEmpty());
}

TEST(ProgramFlags, LaunchOfACommandKeepsItsMeaning) {
  EXPECT_THAT(called_with<roles::ProgramOptions>("launch -- /bin/sh").command,
              ElementsAre("/bin/sh"));
  EXPECT_EQ(refusal("launch --program_spare=false -- /bin/sh"), "--program_spare: needs --program");
}

TEST(ProgramFlags, ATrainerChecksGradientsIfAsked) {
  const std::string line = "worker --task_index=1 --program --program_fd=9" + kHosts;
  EXPECT_EQ(parse_task(line).check_gradients, 0U);
  EXPECT_EQ(parse_task(line + "--check_gradients 50").check_gradients, 50U);
  EXPECT_EQ(refusal("worker --task_index=1 --check_gradients 50" + kHosts),
            "--check_gradients: needs --program");
}

TEST(ProgramFlags, VerifyTakesACommand) {
  const Invocation invocation = parse(
      "verify --steps 5 --batch_size 7 --seed 3 --program_timeout_secs 9 -- /bin/sh {task_index} "
      "--help");
  const auto options = action_of<RunWith<roles::VerifyOptions>>(invocation).options;
  EXPECT_EQ(options.program.file, "/bin/sh");
  EXPECT_THAT(options.program.words, ElementsAre("/bin/sh", "0", "--help"));
  EXPECT_EQ(options.steps, 5U);
  EXPECT_EQ(options.batch_size, 7U);
  EXPECT_EQ(options.seed, 3U);
  EXPECT_EQ(options.timeout, std::chrono::seconds(9));
  EXPECT_EQ(invocation.log.level, roles::LogLevel::kWarning);
  EXPECT_EQ(parse("verify --log_level info -- /bin/sh").log.level, roles::LogLevel::kInfo);
  EXPECT_THAT(refusal("verify"), StartsWith("verify: COMMAND is missing"));
  EXPECT_EQ(refusal("verify --steps 0 -- /bin/sh"),
            "--steps: 0 is not from 1 to 1000 (disttf verify --help-all lists the flags)");
}

TEST(ProgramFlags, NeedACommand) {
  EXPECT_EQ(
      refusal("worker --program" + kHosts),
      "--program: COMMAND is missing; it comes last, as in disttf worker --program -- python3 "
      "train.py");
  EXPECT_THAT(refusal("launch --program"), StartsWith("--program: COMMAND is missing"));
  EXPECT_EQ(refusal("worker --program" + kHosts + "--"), "worker: COMMAND is missing after --");
  EXPECT_EQ(refusal("chief" + kHosts + kCommand),
            "chief: a COMMAND after -- needs --program before it");
  EXPECT_EQ(refusal("ps" + kHosts + kCommand), "ps: a COMMAND after -- needs --program before it");
}

TEST(ProgramFlags, NeedACommandThatCanBeRun) {
  const std::string sentence =
      "COMMAND: \"disttf-is-no-such-program\" is not an executable program; it is not in PATH";
  EXPECT_EQ(refusal("worker --task_index 0 --program" + kHosts + "-- disttf-is-no-such-program"),
            sentence);
  EXPECT_EQ(refusal("launch --program -- disttf-is-no-such-program"), sentence);
  EXPECT_EQ(refusal("train --program -- disttf-is-no-such-program"), sentence);
  EXPECT_THAT(refusal("launch --program -- /bin/sh {rank}"),
              StartsWith("COMMAND: \"{rank}\" in \"{rank}\"; allowed are"));
}

TEST(ProgramFlags, RefuseFlagsWithoutEffect) {
  for (const std::string flag :
       {"dataset digits", "data x.csv", "data_dir x", "download_only", "model softmax",
        "hidden_units 3", "loss softmax_cross_entropy", "label_smoothing 0.1", "augment_shift 0.1",
        "augment_flip", "test_shifts 1", "print_classes", "compute_dtype bf16"}) {
    const std::string name = flag.substr(0, flag.find(' '));
    const std::string sentence =
        "--" + name +
        ": has no effect with --program, because the program has its own model and data; put the "
        "program's own flags after COMMAND";
    EXPECT_EQ(refusal("launch --program --" + flag + kCommand), sentence);
    EXPECT_EQ(refusal("worker --task_index 0 --program --" + flag + kHosts + kCommand), sentence);
  }
  EXPECT_EQ(refusal("launch --program --worker_logs 0" + kCommand),
            "--worker_logs: has no effect with --program");
}

TEST(ProgramFlags, LeaveTheOthers) {
  const roles::LaunchOptions options = parse_launch(
      "launch --program --isa generic --batch_size 10 --optimizer sgd --chief --ps_replicas 2 "
      "--ps 2 --wire_dtype bf16 --ema 0.9 --eval_every 5" +
      kCommand);
  EXPECT_THAT(options.task_arguments, Contains("--isa=generic"));
}

TEST(ProgramFlags, RefuseTasksThatKnowOnlyBuiltInModels) {
  EXPECT_EQ(refusal("launch --program --evaluator" + kCommand),
            "--evaluator: not allowed with --program; it evaluates only built-in models");
  EXPECT_THAT(refusal("train --program --job_name evaluator --train_dir x" + kHosts + kCommand),
              StartsWith("--program: not allowed for an evaluator"));
  EXPECT_THAT(refusal("train --program --existing_servers" + kHosts + kCommand),
              StartsWith("--program: not allowed with --existing_servers"));
}

TEST(ProgramFlags, AreNotOnesOfOtherCommands) {
  EXPECT_THAT(refusal("evaluator --program --train_dir x"), HasSubstr("is not a flag of"));
  EXPECT_THAT(refusal("server --program" + kHosts), HasSubstr("is not a flag of"));
  EXPECT_EQ(
      refusal("evaluator -- foo"),
      "\"--\" is not a flag of disttf evaluator (disttf evaluator --help-all lists the flags)");
}

TEST(ProgramFlags, TheHelpHidesTheSocket) {
  const std::string help = action_of<Print>("worker --help-all").text;
  EXPECT_THAT(help, HasSubstr("--program_spare"));
  EXPECT_THAT(help, Not(HasSubstr("program_fd")));
}

// Which commands have, require and read a secret or a certificate.

// One line for each command that connects to tasks; the lists follow.
constexpr const char* kWhoSpeaks[] = {
    "ps --task_index=0",
    "worker --task_index=1",
    "train --job_name=worker --task_index=0",
    "train --existing_servers",
    "evaluator",
    "server --job_name=ps --task_index=0",
    "plus",
    "serve",
};
constexpr const char* kHere = " --ps_hosts=localhost:1 --worker_hosts=127.0.0.2:2,[::1]:3";

TEST(CommandLine, TasksOnOtherMachinesHaveASecretOrTheWordForNone) {
  for (const std::string command : kWhoSpeaks) {
    SCOPED_TRACE(command);
    EXPECT_EQ(refusal(command + kOtherMachines),
              "--secret_file: missing; ps0:2222 is on another machine, and without a secret any "
              "host that reaches a port can join the run. Give all tasks the same secret, by "
              "--secret_file or DISTTF_SECRET, or certificates, or --insecure");
    EXPECT_EQ(refusal(command + kOtherMachines + "--insecure=false"),
              refusal(command + kOtherMachines));
    EXPECT_EQ(refusal(command + kOtherMachines + "--insecure"), "(accepted)");
    EXPECT_EQ(refusal(command + kHere), "(accepted)");
  }
  EXPECT_THAT(refusal("ps --task_index=0 --ps_hosts=127.0.0.1:1 --worker_hosts=127.0.0.1:2,w:3"),
              testing::HasSubstr("; w:3 is on another machine"));
  EXPECT_THAT(refusal("ps --task_index=0 --chief_host=10.0.0.1:9" + std::string(kHere)),
              testing::HasSubstr("; 10.0.0.1:9 is on another machine"));
  // The task of a server: its lists have a name for the driver to which no task connects.
  EXPECT_EQ(refusal("ps --task_index=0 --listen_fd=3 --chief_host=driver:1" + std::string(kHere)),
            "(accepted)");
  // Addresses of workers that may join are not yet known, so they do not require a secret.
  EXPECT_EQ(refusal("ps --task_index=0 --max_workers=9" + std::string(kHere)), "(accepted)");
}

TEST(CommandLine, TheWordForNoSecretCountsMoreThanTheVariable) {
  const Environment given = {{"DISTTF_SECRET", "short"}};
  EXPECT_EQ(parse_task("ps --task_index=0" + kOtherMachines + "--insecure", given).task.credentials,
            nullptr);
  EXPECT_EQ(refusal("worker --task_index=0 --insecure --secret_file=/x" + kOtherMachines),
            "--insecure: true is not allowed with --secret_file \"/x\"; give one of them");
}

TEST(CommandLine, CertificatesAreWholeAndTheOnlyWay) {
  const std::string all = "--task_cert=/c --task_key=/k --task_ca=/a ";
  for (const std::string command : kWhoSpeaks) {
    SCOPED_TRACE(command);
    const std::string line = command + kOtherMachines;
    // Here the command looks for the files.
    EXPECT_EQ(refusal(line + all), "--task_cert: \"/c\" cannot be read: No such file or directory");
    EXPECT_EQ(refusal(line + "--task_cert=/c"),
              "--task_key: missing; it belongs to --task_cert \"/c\"");
    EXPECT_EQ(refusal(line + "--task_ca=/a"),
              "--task_cert: missing; it belongs to --task_ca \"/a\"");
    EXPECT_EQ(refusal(line + "--task_cert=/c --task_key=/k"),
              "--task_ca: missing; it belongs to --task_cert \"/c\"");
    EXPECT_EQ(refusal(line + all + "--insecure"),
              "--insecure: true is not allowed with --task_cert \"/c\"; give one of them");
    EXPECT_EQ(refusal(line + all + "--secret_file=/s"),
              "--secret_file: \"/s\" is not allowed with --task_cert \"/c\"; give one of them");
  }
  EXPECT_THAT(refusal("train " + all), testing::HasSubstr("is not allowed without a cluster"));
  EXPECT_THAT(refusal("launch " + all), testing::HasSubstr("--task_cert"));
}

// launch passes credentials to its tasks, so its own line needs none.
TEST(CommandLine, WhatDescribesNoClusterNeedsNone) {
  EXPECT_EQ(refusal("launch"), "(accepted)");
  EXPECT_EQ(refusal("train"), "(accepted)");
  EXPECT_EQ(refusal("resolve worker --task_index=0" + kOtherMachines), "(accepted)");
}

TEST(CommandLine, WhoReadsASecretKeepsItsMemoryPrivate) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the leak detector looks into the process";
#endif
  const auto dumpable = [](const Environment& environment) {
    prctl(PR_SET_DUMPABLE, 1);  // resets the effect of other tests
    static_cast<void>(
        parse("ps --task_index=0 --ps_hosts=127.0.0.1:1 --worker_hosts=127.0.0.1:2", environment));
    _exit(prctl(PR_GET_DUMPABLE));
  };
  EXPECT_EXIT(dumpable({}), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(dumpable({{"DISTTF_SECRET", std::string(32, 's')}}), testing::ExitedWithCode(0), "");
}

// A launch makes its secret itself, and every command may find one in its environment.
TEST(CommandLine, ALaunchAndEachTaskWithASecretKeepTheirMemoryPrivate) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the leak detector looks into the process";
#endif
  const auto dumpable_after = [](const std::vector<std::string>& words) {
    prctl(PR_SET_DUMPABLE, 1);
    static_cast<void>(run_command_line(words));
    _exit(prctl(PR_GET_DUMPABLE));
  };
  const std::vector<std::string> launch = {"launch", "--control=/none/x.sock", "--confine=false"};
  EXPECT_EXIT(dumpable_after(launch), testing::ExitedWithCode(0), "--control: .* is unavailable");
  unsetenv("DISTTF_SECRET");
  EXPECT_EXIT(dumpable_after({"--version"}), testing::ExitedWithCode(1), "");
  setenv("DISTTF_SECRET", std::string(32, 's').c_str(), 1);
  EXPECT_EXIT(dumpable_after({"--version"}), testing::ExitedWithCode(0), "");
  unsetenv("DISTTF_SECRET");
}

}  // namespace
}  // namespace disttf
