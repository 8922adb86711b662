// launch [FLAGS] -- COMMAND: the parsed line, and the lines that are rejected before anything runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roles/launch/shell/program_launcher.h"
#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

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
