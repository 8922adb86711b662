// A `disttf launch` with a --train_dir that receives a stop signal: it saves first.
#include <csignal>
#include <filesystem>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

// Saves only at the signal.
const Words kSavesAtTheEndAlone = {"--save_secs=0", "--save_steps=0"};

struct Stopped {
  int signal = 0;
  int exit_code = 0;
  Words shape;
};

class StoppedLaunch : public ProcessTest, public ::testing::WithParamInterface<Stopped> {
 protected:
  Process& launch(const Words& arguments) {
    return run("launch",
               Words{"launch", "--train_dir=" + directory_.string()} + arguments + data_flags());
  }
  // Returns the newest step in the log.
  static std::uint64_t last_step(const Process& job) {
    const std::string text = job.standard_error();
    const std::size_t at = text.rfind("(global step: ");
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + 14));
  }

  const std::filesystem::path directory_ = scratch() / "run";
};

TEST_P(StoppedLaunch, SavesTheStepAtWhichItIsAndGoesOnFromThere) {
  Process& job = launch(endless() + kSavesAtTheEndAlone + GetParam().shape);
  ASSERT_TRUE(says(job, "training step 20 done"));
  job.send(GetParam().signal);
  EXPECT_TRUE(exits(job, GetParam().exit_code));
  const std::string saved =
      captured(job.standard_error(), "Saved checkpoint at global step ([0-9]+)");
  ASSERT_FALSE(saved.empty());
  // A ps may have made one step more than the trainers have received; workers may have received one
  // more than the chief, whose last gradient was in flight when the signal came.
  const std::uint64_t step = std::stoull(saved);
  EXPECT_GE(step + 1, last_step(job));
  EXPECT_LE(step, last_step(job) + 1);
  Process& next = launch({"--train_steps=" + std::to_string(step + 5)});
  EXPECT_TRUE(exits(next, kExitDone));
  EXPECT_TRUE(says(next, "Training begins at global step " + saved + "$"));
}

INSTANTIATE_TEST_SUITE_P(By, StoppedLaunch,
                         ::testing::Values(Stopped{SIGTERM, kExitTerminated, {}},
                                           Stopped{
                                               SIGINT, kExitInterrupted, {"--ps=2", "--chief"}}),
                         [](const auto& each) {
                           return std::string(each.param.signal == SIGINT ? "Interrupt"
                                                                          : "Termination");
                         });

using StoppedLaunchAgain = StoppedLaunch;

// The chief cannot save: a ps is frozen.
TEST_F(StoppedLaunchAgain, ASecondSignalEndsAllAtOnce) {
  Process& job = launch(endless() + kSavesAtTheEndAlone);
  ASSERT_TRUE(says(job, "training step 5 done"));
  const std::vector<pid_t> children = children_of(job.pid());
  ASSERT_EQ(children.size(), 3U);
  kill(children[0], SIGSTOP);
  job.send(SIGTERM);
  ASSERT_TRUE(says(job, "disttf launch: stopped by SIGTERM; the chief saves first"));
  // A second signal that comes at once counts as the same: `timeout`, for one, sends two. (A signal
  // that comes just before the exit finds no handler.)
  while (job.wait(milliseconds(100)).timed_out &&
         count_of(job.standard_error(), "SIGTERM again") == 0) {
    job.send(SIGTERM);
  }
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_TRUE(says(job, "disttf launch: SIGTERM again; killing all tasks"));
  EXPECT_TRUE(wait_until_gone(children));
  EXPECT_EQ(count_of(job.standard_error(), "Saved checkpoint"), 0U);
}

TEST_F(StoppedLaunchAgain, AChiefThatCannotSaveIsNotWaitedForForEver) {
  Process& job = launch(endless() + kSavesAtTheEndAlone);
  ASSERT_TRUE(says(job, "training step 5 done"));
  const std::vector<pid_t> children = children_of(job.pid());
  ASSERT_EQ(children.size(), 3U);
  kill(children[1], SIGSTOP);  // the chief itself
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_TRUE(wait_until_gone(children));
  EXPECT_TRUE(says(job, "\\[worker:0\\] did not end within [0-9]+ s"));
}

// The lost ps's state cannot be saved by any number of attempts.
TEST_F(StoppedLaunchAgain, AChiefDoesNotAskAPsThatIsGone) {
  for (const Words& shape : {Words{}, Words{"--ps=2", "--sharded_checkpoint"}}) {
    Process& job = launch(endless() + kSavesAtTheEndAlone + Words{"--restart=never"} + shape);
    ASSERT_TRUE(says(job, "training step 5 done"));
    kill(children_of(job.pid()).at(0), SIGKILL);
    EXPECT_TRUE(exits(job, kExitLostPeers));
    EXPECT_TRUE(says(job, "no checkpoint was saved: ps 0 .* is gone, and with it its part"));
  }
}

// Without a launcher: only the chief gets the signal.
TEST_F(StoppedLaunchAgain, AChiefOfItsOwnSavesWhileThePsLive) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2, .chief = true});
  const Tasks tasks = run_cluster(
      cluster, endless() + kSavesAtTheEndAlone + Words{"--train_dir=" + directory_.string()});
  ASSERT_TRUE(says(tasks.chief(), "training step 20 done"));
  tasks.chief().send(SIGTERM);
  EXPECT_TRUE(exits(tasks.chief(), kExitTerminated));
  EXPECT_TRUE(says(tasks.chief(), "Saved checkpoint at global step " +
                                      std::to_string(last_step(tasks.chief())) + " |step " +
                                      std::to_string(last_step(tasks.chief()) + 1) + " in"));
}

}  // namespace
}  // namespace disttf::test_process
