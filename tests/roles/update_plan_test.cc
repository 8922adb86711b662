// What an update changes, and how.
#include "roles/launch/shell/update_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "roles/launch/shell/managed_job.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LaunchOptions launched(std::vector<std::string> arguments = {"--train_dir=/d"}) {
  LaunchOptions options;
  options.task_arguments = std::move(arguments);
  return options;
}

std::string refusal(const LaunchOptions& now, const LaunchOptions& wanted) {
  try {
    static_cast<void>(plan_update(now, wanted));
  } catch (const JobRefusal& refusal) {
    return refusal.what();
  }
  return "";
}

TEST(UpdatePlan, OfTheSameIsEmpty) {
  const UpdatePlan plan = plan_update(launched(), launched());
  EXPECT_THAT(plan.changes, IsEmpty());
  EXPECT_FALSE(plan.rolls || plan.restarts || plan.new_workers != 0);
}

TEST(UpdatePlan, LetsWorkersJoinWhereTheyMay) {
  const LaunchOptions now = launched({"--max_workers=4"});
  LaunchOptions wanted = now;
  wanted.workers = 4;
  const UpdatePlan plan = plan_update(now, wanted);
  EXPECT_EQ(plan.new_workers, 2U);
  EXPECT_FALSE(plan.restarts);
  EXPECT_THAT(plan.changes, ElementsAre("--workers: 2 -> 4"));
}

TEST(UpdatePlan, OtherwiseStartsAgainWithMoreWorkers) {
  for (const LaunchOptions& now : {launched(), launched({"--max_workers=3", "--train_dir=/d"})}) {
    LaunchOptions wanted = now;
    wanted.workers = 4;
    const UpdatePlan plan = plan_update(now, wanted);
    EXPECT_TRUE(plan.restarts);
    EXPECT_EQ(plan.new_workers, 0U);
  }
}

TEST(UpdatePlan, NeverShrinks) {
  LaunchOptions fewer = launched();
  fewer.workers = 1;
  EXPECT_EQ(refusal(launched(), fewer),
            "--workers: 1 is fewer than the 2 that run; counts cannot shrink");
  LaunchOptions more = launched();
  more.ps = 2;
  EXPECT_EQ(refusal(more, launched()),
            "--ps: 1 is fewer than the 2 that run; counts cannot shrink");
}

TEST(UpdatePlan, RollsWhatIsOfOneTask) {
  LaunchOptions wanted = launched({"--train_dir=/d", "--log_every=5"});
  wanted.trainer_limits.cpus = 1.5;
  wanted.ps_limits.memory_mib = 100;
  const UpdatePlan plan = plan_update(launched({"--train_dir=/d", "--save_secs=3"}), wanted);
  EXPECT_TRUE(plan.rolls);
  EXPECT_FALSE(plan.restarts);
  EXPECT_THAT(plan.changes, ElementsAre("--log_every: default -> 5", "--save_secs: 3 -> default",
                                        "--ps_memory: unlimited -> 100", "--cpus: all -> 1.5"));
}

TEST(UpdatePlan, StartsAgainForTheConfiguration) {
  const UpdatePlan plan =
      plan_update(launched(), launched({"--train_dir=/d", "--batch_size=50", "--log_every=5"}));
  EXPECT_TRUE(plan.restarts);
  EXPECT_FALSE(plan.rolls) << "all tasks get the new settings anyway";
}

TEST(UpdatePlan, NeedsACheckpointToStartAgain) {
  EXPECT_EQ(refusal(launched({}), launched({"--batch_size=50"})),
            "this needs all tasks to start again from a checkpoint, and the run has no --train_dir "
            "(--batch_size: default -> 50)");
  LaunchOptions more = launched({});
  more.workers = 3;
  EXPECT_THAT(refusal(launched({}), more), HasSubstr("no --train_dir (--workers: 2 -> 3)"));
}

TEST(UpdatePlan, RefusesWhatACheckpointCannotBecome) {
  EXPECT_EQ(refusal(launched(), launched({"--train_dir=/d", "--model=softmax"})),
            "--model: cannot become softmax in this run, which has default: the checkpoint holds "
            "another model");
  EXPECT_THAT(refusal(launched(), launched({"--train_dir=/e"})), HasSubstr("--train_dir: cannot"));
  EXPECT_THAT(refusal(launched(), launched({"--train_dir=/d", "--hidden_units=7"})),
              HasSubstr("--hidden_units: cannot"));
}

// The launch's user decides at the start what the tasks may reach, and no update changes that.
TEST(UpdatePlan, RefusesFilesAddressesDataSecretsAndConfinement) {
  for (const char* argument :
       {"--confine=false", "--metrics_file=/h/.profile", "--log_dir=/e", "--data=/e.csv",
        "--data_dir=/e", "--data_url=http://e", "--ca_file=/e", "--dataset=digits",
        "--secret_file=/e", "--insecure=true", "--task_cert=/e", "--on_finish=e",
        "--debug_attempts=exec:/bin/true", "--transport=tcp", "--listen_fd=3"}) {
    const std::string name = std::string(argument).substr(0, std::string(argument).find('='));
    EXPECT_THAT(refusal(launched(), launched({"--train_dir=/d", argument})),
                HasSubstr(name + ": cannot become "))
        << argument;
    EXPECT_THAT(refusal(launched({"--train_dir=/d", argument}), launched()),
                HasSubstr(name + ": cannot become default"))
        << argument;
  }
}

TEST(UpdatePlan, RefusesOtherMetrics) {
  LaunchOptions wanted = launched();
  wanted.metrics.textfile = "/h/.profile";
  EXPECT_THAT(refusal(launched(), wanted), HasSubstr("--metrics_textfile"));
  wanted = launched();
  wanted.metrics.port = 1;
  EXPECT_THAT(refusal(launched(), wanted), HasSubstr("--metrics_port"));
}

}  // namespace
}  // namespace disttf::roles
