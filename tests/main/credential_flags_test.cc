// Which commands have, require and read a secret or a certificate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "main/command_line.h"
#include "main/run_command_line.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

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
