// --ema: the averages are the result, and are bit-identical like the weights, whichever task is
// killed.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kRun = {"--train_steps=150", "--print_weights_hash", "--ema=0.95"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10",
                       "--log_level=debug"};

class Averages : public ProcessTest {
 protected:
  std::string hash_of_launch(const Words& flags) {
    Process& job = run("launch", Words{"launch"} + flags + data_flags());
    EXPECT_TRUE(exits(job, kExitDone));
    return weights_hash_in(job);
  }
};

TEST_F(Averages, AreTheResultWhateverTheNumberOfPs) {
  const Words flags = Words{"--workers=3"} + kRun;
  const std::string one = hash_of_launch(flags);
  ASSERT_EQ(one.size(), 64U);
  for (const char* other : {"--ps=2", "--ps=3", "--transport=tcp", "--threads=2"}) {
    EXPECT_EQ(hash_of_launch(flags + Words{other}), one) << other;
  }
  EXPECT_NE(hash_of_launch({"--workers=3", "--train_steps=150", "--print_weights_hash"}), one);
}

TEST_F(Averages, AreThoseOfAnUndisturbedRunWhereAPsIsLost) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Tasks tasks = run_cluster(cluster, kRun + kSlowly);
  ASSERT_TRUE(says(tasks.chief(), kHasSnapshot));
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1);
  EXPECT_TRUE(says(tasks.chief(), "The run goes on from global step [1-9][0-9]*, generation 2"));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--workers=2"} + kRun);
}

TEST_F(Averages, AreThoseOfAnUndisturbedRunWhereACopyTakesOver) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  const Words flags = kRun + kSlowly + Words{"--ps_replicas=2"};
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_TRUE(says(tasks.chief(), "range 1: view .* with a backup"));
  ASSERT_TRUE(says(tasks.chief(), "global step: [2-9][0-9],"));
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1, flags);
  ASSERT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--workers=2"} + kRun);
}

// The first run is stopped and saves; the next resumes with another number of ps; a third one finds
// the run finished.
TEST_F(Averages, GoOnFromACheckpoint) {
  const Words flags = Words{"--workers=2"} + kRun;
  const Words saved = flags + Words{"--train_dir=" + (scratch() / "run").string()};
  Process& first = run("first", Words{"launch", "--ps=1"} + saved + kSlowly + data_flags());
  ASSERT_TRUE(says(first, "global step: 25,"));
  first.send(SIGTERM);
  ASSERT_TRUE(exits(first, kExitTerminated));
  const std::string undisturbed = hash_of_launch(flags);
  EXPECT_EQ(hash_of_launch(saved + Words{"--ps=3"}), undisturbed);
  EXPECT_EQ(hash_of_launch(saved + Words{"--ps=2"}), undisturbed);
}

TEST_F(Averages, BeginWithTheWeightsOfACheckpointThatHasNone) {
  const Words saved = {"--workers=2", "--train_dir=" + (scratch() / "run").string(),
                       "--print_weights_hash"};
  const std::string last = hash_of_launch(saved + Words{"--train_steps=50"});
  EXPECT_EQ(hash_of_launch(saved + Words{"--train_steps=50", "--ema=0.95"}), last);
}

TEST_F(Averages, AreTheResultWhereNotEveryGradientCounts) {
  for (const char* mode : {"--replicas_to_aggregate=2", "--sync_replicas=false"}) {
    Process& job =
        run("launch", Words{"launch", "--workers=3", "--ps=2", mode} + kRun + data_flags());
    EXPECT_TRUE(exits(job, kExitDone)) << mode;
    EXPECT_GT(accuracy_in(job), 0.7) << mode;
  }
}

}  // namespace
}  // namespace disttf::test_process
