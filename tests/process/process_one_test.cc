// disttf as process 1 of a container: it inherits orphans of other processes, and signals without a
// handler do not affect it. And a terminal that is closed.
#include <csignal>
#include <string>
#include <utility>

#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

// Runs in a PID namespace with its own /proc.
class ProcessOne : public ProcessTest {
 protected:
  void SetUp() override {
    Process& probe = run_program("/usr/bin/unshare", apart() + Words{"/bin/true"}, "probe");
    if (probe.wait().exit_code != 0) {
      test_support::skip_without_engine("unshare cannot make a PID namespace here");
    }
  }
  static Words apart() { return {"--pid", "--fork", "--kill-child", "--mount-proc"}; }
  Process& run_as_1(const Words& arguments) {
    return run_program("/usr/bin/unshare", apart() + Words{disttf_binary()} + arguments, "as 1");
  }
  // The number, outside, of process 1 of the newest such namespace.
  [[nodiscard]] static pid_t outer_pid(const Process& unshare) {
    const std::vector<pid_t> children = children_of(unshare.pid());
    EXPECT_EQ(children.size(), 1U);
    return children.empty() ? -1 : children.front();
  }
};

// A shell's background jobs outlive it, and end; then the script checks until none is left to be
// reaped.
constexpr const char* kOrphans =
    "(sleep 0.1 &); (sleep 0.1 &); while ps -eo args,stat | grep -qE '^sleep 0.1| Z'; do "
    "sleep 0.05; done; echo none is left";

TEST_F(ProcessOne, LaunchOfACommandReapsOrphans) {
  Process& job = run_as_1({"launch", "-w", "1", "-s", "1", "--", "/bin/sh", "-c", kOrphans});
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "none is left"));
}

// A process that enters the namespace leaves an orphan, as `docker exec` does.
TEST_F(ProcessOne, TasksReapOrphans) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  const Words launch = Words{"launch", "--workers=1"} + endless() + data_flags();
  const Words ps = Words{"ps", "--task_index=0"} + cluster.host_flags();
  for (const auto& [words, sign] :
       {std::pair(launch, "training step 2 done"), std::pair(ps, "Started server with target")}) {
    Process& unshare = run_as_1(words);
    ASSERT_TRUE(says(unshare, sign)) << words.front();
    const pid_t one = outer_pid(unshare);
    Process& guest = run_program(
        "/usr/bin/nsenter",
        {"--target", std::to_string(one), "--pid", "--mount", "/bin/sh", "-c", kOrphans}, "guest");
    EXPECT_TRUE(exits(guest, kExitDone)) << words.front();
    kill(one, SIGTERM);
    EXPECT_TRUE(exits(unshare, kExitTerminated)) << words.front();
  }
}

class Hangup : public ProcessTest {};

TEST_F(Hangup, EndsALaunchThatSavesFirst) {
  Process& job =
      run("launch", Words{"launch", "--workers=1", "--train_dir=run"} + endless() + data_flags());
  ASSERT_TRUE(says(job, "training step 3 done"));
  job.send(SIGHUP);
  constexpr int kExitHungUp = 129;
  EXPECT_TRUE(exits(job, kExitHungUp));
  EXPECT_TRUE(says(job, "stopped by SIGHUP; the chief saves first"));
  EXPECT_TRUE(says(job, "Saved checkpoint at global step"));
}

TEST_F(Hangup, IsNotHeardUnderNohup) {
  Process& job = run_program(
      "/bin/sh",
      {"-c", "trap '' HUP; exec \"$0\" \"$@\"", disttf_binary(), "launch", "--workers=1",
       "--dataset=digits", "--train_steps=60", "--debug_delay_ms=20", "--log_every=1"},
      "launch");
  ASSERT_TRUE(says(job, "training step 3 done"));
  job.send(SIGHUP);
  for (const pid_t task : children_of(job.pid())) {
    kill(task, SIGHUP);
  }
  EXPECT_TRUE(exits(job, kExitDone));
}

}  // namespace
}  // namespace disttf::test_process
