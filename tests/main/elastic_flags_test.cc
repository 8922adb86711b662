// The effect of --min_workers, --max_workers and --micro_batches on the cluster and the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/main/command_lines.h"

namespace disttf {
namespace {

using testing::HasSubstr;

TEST(ElasticFlags, MaxWorkersIsTheNumberOfMicroBatches) {
  const roles::TrainerOptions worker = parse_task("worker --task_index 1 --max_workers 5" + kHosts);
  EXPECT_EQ(worker.task.cluster.trainer_count(), 5U);
  EXPECT_EQ(worker.config.trainers, 5U);
  EXPECT_EQ(worker.config.micro_batches, 5U);
  EXPECT_EQ(worker.config.min_workers, 1U);
}

TEST(ElasticFlags, AChiefTaskTakesAMicroBatchToo) {
  const roles::TrainerOptions chief = parse_task("chief --chief_host c:1 --max_workers 5" + kHosts);
  EXPECT_EQ(chief.config.micro_batches, 6U);
}

TEST(ElasticFlags, MicroBatchesNeedNotBeThatMany) {
  EXPECT_EQ(parse_task("ps --max_workers 5 --micro_batches 8" + kHosts).config.micro_batches, 8U);
}

TEST(ElasticFlags, AsynchronousTrainersNeedNoMicroBatches) {
  const roles::TrainerOptions ps = parse_task("ps --max_workers 5 --sync_replicas=false" + kHosts);
  EXPECT_EQ(ps.config.trainers, 5U);
  EXPECT_FALSE(ps.config.elastic());
}

TEST(ElasticFlags, LaunchStartsFewerThanMayJoin) {
  const roles::LaunchOptions launch = parse_launch("launch --workers 2 --max_workers 4");
  EXPECT_EQ(launch.workers, 2U);
  EXPECT_THAT(launch.task_arguments, testing::Contains("--max_workers=4"));
}

TEST(ElasticFlags, RefusesLessThanThereAre) {
  EXPECT_EQ(refusal("ps --max_workers 1" + kHosts),
            "--max_workers: 1 is less than the 2 workers that the cluster lists");
  EXPECT_EQ(refusal("launch --workers 3 --max_workers 2"),
            "--max_workers: 2 is less than the 3 of --workers");
  EXPECT_EQ(refusal("render slurm --insecure --workers 3 --max_workers 2"),
            "--max_workers: 2 is less than the 3 of --workers");
}

TEST(ElasticFlags, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(refusal("ps --max_workers 3 --replicas_to_aggregate 2" + kHosts),
            "--max_workers: 3 is not allowed with --replicas_to_aggregate");
  EXPECT_THAT(refusal("ps --max_workers 3 --min_workers 4" + kHosts),
              HasSubstr("--min_workers: 4 is more than the 3 trainers"));
}

TEST(ElasticFlags, ResolveTellsHowManyMayJoin) {
  const std::string line = " worker --task_index 1 --max_workers 4" + kHosts;
  const auto resolved = [&](const std::string& flags) {
    return action_of<Print>("resolve " + flags + line).text;
  };
  EXPECT_THAT(resolved(""), HasSubstr("at most 4 trainers"));
  EXPECT_THAT(resolved("--print"), HasSubstr("max_workers  4"));
  EXPECT_THAT(resolved("--json"), HasSubstr(R"("worker":["w0:2222","w1:2222"])"));
}

}  // namespace
}  // namespace disttf
