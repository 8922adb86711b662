// Tasks in containers of the image that the Containerfile makes: on a bridge of their own, where
// they find each other by name. They end with the weights of `launch`.
#include <csignal>
#include <fstream>

#include "tests/process/container_host.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;

const Words kTrainers = {"chief-0", "worker-0", "worker-1"};
const Words kTasks = Words{"ps-0", "ps-1"} + kTrainers;
const Words kRun = {"--train_steps=150", "--print_weights_hash", "--heartbeat_timeout=3"};
// Slow enough that something can be done to it in the middle.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10"};

class Containers : public ProcessTest {
 protected:
  void SetUp() override {
    std::string why;
    host_ = ContainerHost::create(scratch(), false, why);
    if (!host_) {
      GTEST_SKIP() << why;
    }
  }
  void TearDown() override {
    for (const std::string& task : host_&& HasFailure() ? kTasks : Words()) {
      std::cerr << "--- " << task << "\n" << host_->logs(task);
    }
  }

  // The folder of the data, and what it is called inside of a container.
  [[nodiscard]] static Words data_volume() {
    const std::string flag = data_dir_flag();
    return {"--volume=" + flag.substr(flag.find('=') + 1) + ":/data:ro"};
  }
  [[nodiscard]] static Words data_flags_inside() { return {"--data_dir=/data", data_flags()[1]}; }

  // A container is called as its task is: "worker-1".
  void start(const std::string& task, const Words& more) {
    const std::size_t dash = task.find('-');
    host_->start_container(task, data_volume(),
                           Words{task.substr(0, dash), "--task_index=" + task.substr(dash + 1),
                                 "--ps_hosts=ps-0:2222,ps-1:2222", "--chief_host=chief-0:2222",
                                 "--worker_hosts=worker-0:2222,worker-1:2222"} +
                               data_flags_inside() + more);
  }
  void start_all(const Words& more) {
    for (const std::string& task : kTasks) {
      start(task, more);
    }
  }
  void start_training(const Words& more = {}) {
    start_all(kRun + kSlowly + more);
    for (const std::string& trainer : kTrainers) {
      EXPECT_TRUE(host_->says(trainer, "training step 20 done"));
    }
  }
  void expect_undisturbed() {
    for (const std::string& task : kTasks) {
      EXPECT_EQ(host_->exit_code(task), kExitDone) << task;
    }
    Process& undisturbed =
        run("undisturbed", Words{"launch", "--workers=2", "--chief"} + kRun + data_flags());
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    for (const std::string& trainer : kTrainers) {
      const std::string logs = host_->logs(trainer);
      EXPECT_THAT(logs, HasSubstr("Weights SHA-256: " + weights_hash_in(undisturbed) + "\n"));
      EXPECT_THAT(logs, HasSubstr(data_name() + " accuracy: 0."));
    }
  }

  std::unique_ptr<ContainerHost> host_;
};

TEST_F(Containers, TrainAndEachEndsWith0) {
  start_all(kRun);
  expect_undisturbed();
}

// It comes back under its name, at another address or the same one.
TEST_F(Containers, WorkerKilledAndStartedAgain) {
  start_training();
  host_->run({"podman", "kill", "--signal=KILL", "worker-1"});
  EXPECT_EQ(host_->exit_code("worker-1"), 128 + SIGKILL);
  host_->run({"podman", "start", "worker-1"});
  expect_undisturbed();
}

TEST_F(Containers, PsKilledAndStartedAgain) {
  start_training();
  host_->run({"podman", "kill", "--signal=KILL", "ps-1"});
  EXPECT_EQ(host_->exit_code("ps-1"), 128 + SIGKILL);
  host_->run({"podman", "start", "ps-1"});
  expect_undisturbed();
  EXPECT_THAT(host_->logs("ps-0"), HasSubstr("generation 2"));
}

TEST_F(Containers, PsKilledForGood) {
  start_training({"--peer_timeout=2", "--worker_timeout=2"});
  host_->run({"podman", "kill", "--signal=KILL", "ps-1"});
  for (const std::string& task : kTasks) {
    EXPECT_EQ(host_->exit_code(task), task == "ps-1" ? 128 + SIGKILL : kExitLostPeers) << task;
  }
}

TEST_F(Containers, AreToldToStop) {
  start_training();
  host_->run({"podman", "stop", "worker-1"});
  EXPECT_EQ(host_->exit_code("worker-1"), kExitTerminated);
  EXPECT_THAT(host_->logs("worker-1"), HasSubstr("stopped by SIGTERM before the run finished"));
}

}  // namespace
}  // namespace disttf::test_process
