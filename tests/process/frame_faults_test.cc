// Step channels that lose, cut, delay, repeat and reorder frames by a seed: the run's result is
// bit-identical to an undisturbed one. A failing seed is in the test's name and command lines.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kRun = {"--train_steps=150", "--print_weights_hash"};
// In 1000 frames: about every fifth exchange has a fault.
constexpr int kRate = 100;

bool shares_memory(int seed) { return seed % 2 == 0; }

Words faults(int seed) {
  return {"--chaos_frames=" + std::to_string(seed) + "," + std::to_string(kRate),
          shares_memory(seed) ? "--transport=shm" : "--transport=tcp"};
}

class FrameFaults : public ProcessTest, public ::testing::WithParamInterface<int> {
 protected:
  std::string undisturbed_hash() {
    Process& undisturbed = run("undisturbed", launch() + kRun);
    EXPECT_TRUE(exits(undisturbed, kExitDone));
    return weights_hash_in(undisturbed);
  }
  static Words launch() {
    return Words{"launch", "--ps=2", "--workers=2", "--chief"} + data_flags();
  }
};

TEST_P(FrameFaults, LeaveTheBitsAlone) {
  Process& launched = run("launch", launch() + kRun + faults(GetParam()));
  EXPECT_TRUE(exits(launched, kExitDone));
  EXPECT_EQ(weights_hash_in(launched), undisturbed_hash());
  const std::string log = launched.standard_error();
  Words kinds = {"\\) is lost",         "\\) is cut after",    "\\) is sent, but reported as lost",
                 "\\) is lost for now", "\\) is delayed",      "\\) is sent twice",
                 "\\) comes late",      "is a reply and lost", "is a reply and delayed"};
  if (!shares_memory(GetParam())) {  // otherwise replies mostly have no body that could be cut
    kinds.push_back("is a reply and cut");
  }
  for (const std::string& kind : kinds) {
    EXPECT_THAT(log, ::testing::ContainsRegex(kind)) << "too few kinds of faults";
  }
}

TEST_P(FrameFaults, AndAPsThatIsKilled) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2, .chief = true});
  Tasks tasks =
      run_cluster(cluster, kRun + faults(GetParam()) + Words{"--save_steps=20", "--log_every=1"});
  ASSERT_TRUE(says(tasks.chief(), "global step: [4-9][0-9],"));
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  const std::string undisturbed = undisturbed_hash();
  for (Process* trainer : tasks.trainers) {
    EXPECT_EQ(weights_hash_in(*trainer), undisturbed);
  }
}

TEST_P(FrameFaults, DoNotHoldUpAnAsynchronousRun) {
  Process& launched = run("launch", launch() + faults(GetParam()) +
                                        Words{"--train_steps=400", "--sync_replicas=false"});
  EXPECT_TRUE(exits(launched, kExitDone));
}

INSTANTIATE_TEST_SUITE_P(Seed, FrameFaults, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace disttf::test_process
