// Several hosts: network namespaces with their own addresses, and processes that do not see those
// of other hosts, so that memory cannot be shared. The README's example, and a driver with its
// servers, with a secret; over links of 100 Mb/s without one.
#include <csignal>
#include <iostream>

#include "tests/process/network.h"
#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;

const Words kLists = {"--ps_hosts=ps0:2222,ps1:2222", "--worker_hosts=worker0:2222,worker1:2222"};
const std::vector<std::string> kHosts = {"ps0", "ps1", "worker0", "worker1"};
// The bytes of the default model's parameters; a gradient has the same size.
constexpr std::uint64_t kBytesOfParameters = 79'510 * 4;

class Hosts : public ProcessTest {
 protected:
  void SetUp() override {
    std::string why;
    network_ = Network::create(kHosts + Words{"driver"}, why);
    if (!network_) {
      test_support::skip_without_engine(why);
    }
  }
  // Skips the test if the kernel cannot limit the rate of a link.
  void shape_links() {
    for (const std::string& host : kHosts) {
      std::string why;
      const std::string link = network_->shape(host, why);
      if (link.empty()) {
        GTEST_SKIP() << "links cannot be shaped here: " << why;
      }
      std::cout << "the link of " << host << ": " << link << "\n";
    }
  }
  Process& start_on(const std::string& host, const Words& words) {
    return run_program(network_->program(),
                       network_->words_alone_on(host) + Words{disttf_binary()} + words,
                       words.front() + " on " + host);
  }
  // Starts worker 1 on "worker1", and so on.
  std::vector<Process*> start_tasks(const Words& more) {
    std::vector<Process*> tasks;
    for (const std::string& host : kHosts) {
      tasks.push_back(&start_on(host, Words{host.substr(0, host.size() - 1),
                                            "--task_index=" + host.substr(host.size() - 1)} +
                                          kLists + data_flags() + more));
    }
    return tasks;
  }
  // Expects that every gradient has crossed the network.
  void expect_bytes_on_the_wire(std::uint64_t steps) {
    for (const char* worker : {"worker0", "worker1"}) {
      EXPECT_GE(network_->sent_by(worker), steps * kBytesOfParameters) << worker;
    }
  }

  [[nodiscard]] const Words& secret() const { return secret_; }

  std::unique_ptr<Network> network_;

 private:
  const Words secret_ = {"--secret_file=" + write_secret(scratch())};
};

TEST_F(Hosts, AreNotReachedByTasksThatHaveNeitherASecretNorTheWordForNone) {
  Process& ps = start_on("ps0", Words{"ps", "--task_index=0"} + kLists);
  EXPECT_TRUE(exits(ps, kExitUsage));
  EXPECT_TRUE(says(ps, "--secret_file: missing; ps0:2222 is on another machine"));
}

TEST_F(Hosts, TrainAsInFourTerminals) {
  const Words run = {"--train_steps=500", "--print_weights_hash", "--log_level=debug"};
  const std::vector<Process*> tasks = start_tasks(run + secret());
  ASSERT_TRUE(all_exit(tasks, kExitDone));
  expect_weights_of_launch({tasks[2], tasks[3]}, Words{"--ps=2", "--workers=2"} + run);
  for (const Process* worker : {tasks[2], tasks[3]}) {
    EXPECT_THAT(worker->standard_error(), HasSubstr("shares memory with 0 of 2 ps"));
  }
  EXPECT_GT(accuracy_in(*tasks[2]), 0.9);
  expect_bytes_on_the_wire(500);
}

TEST_F(Hosts, TrainOverLinksOf100MegabitsPerSecond) {
  shape_links();
  if (IsSkipped()) {
    return;
  }
  const Words run = {"--train_steps=100", "--print_weights_hash"};
  const std::vector<Process*> tasks = start_tasks(run + Words{"--insecure"});
  ASSERT_TRUE(all_exit(tasks, kExitDone));
  expect_weights_of_launch({tasks[2], tasks[3]}, Words{"--ps=2", "--workers=2"} + run);
  EXPECT_GT(accuracy_in(*tasks[2]), 0.8);
  expect_bytes_on_the_wire(100);
  for (const std::string& host : kHosts) {
    EXPECT_GE(network_->shaped_by(host), 100 * kBytesOfParameters) << host;
  }
}

// The servers cannot resolve the driver's name or connect to it.
TEST_F(Hosts, AreServersThatOneProcessDrives) {
  std::vector<Process*> servers;
  for (const std::string& host : kHosts) {
    servers.push_back(
        &start_on(host, Words{"server", "--job_name=" + host.substr(0, host.size() - 1),
                              "--task_index=" + host.substr(host.size() - 1), data_dir_flag()} +
                            kLists + secret()));
  }
  const Words run = {"--train_steps=100", "--print_weights_hash"};
  Process& driver = start_on(
      "driver", Words{"train", "--existing_servers"} + kLists + secret() + data_flags() + run);
  EXPECT_TRUE(exits(driver, kExitDone));
  expect_weights_of_launch({&driver}, Words{"--ps=2", "--workers=2", "--chief"} + run);
  expect_bytes_on_the_wire(100);
  for (Process* server : servers) {
    EXPECT_TRUE(says_times(*server, 2, "Waiting for requests"));
  }
}

// Eight workers on two hosts, and ps on others: a host sends the sum of its four workers'
// gradients. The weights are bit-identical to those of workers that push their own gradients,
// whichever process is killed or frozen.

using net::Job;

constexpr std::size_t kWorkers = 8;
constexpr std::size_t kOnAHost = 4;
constexpr std::uint64_t kSteps = 200;
constexpr std::uint64_t kGradientBytes = 79'510 * sizeof(float);

const Words kRun = {"--train_steps=" + std::to_string(kSteps), "--print_weights_hash",
                    "--heartbeat_timeout=3"};
// Slow enough that the test can disturb the run before it ends.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1"};
constexpr const char* kOneSum = "pushes the gradients of the 4 trainers of this host as one";

class HostGroupTest : public ProcessTest {
 protected:
  void SetUp() override {
    std::string why;
    network_ = Network::create({"ps0", "ps1", "one", "two", "spare"}, why);
    if (!network_) {
      test_support::skip_without_engine(why);
    }
  }

  static std::string host_of(Job job, std::size_t index) {
    return job == Job::kPs ? "ps" + std::to_string(index) : index < kOnAHost ? "one" : "two";
  }

  Process& start(Job job, std::size_t index, const Words& more) {
    return start_on(host_of(job, index), job, index, more);
  }
  Process& start_on(const std::string& host, Job job, std::size_t index, const Words& more) {
    const std::string command(net::job_name(job));
    return run_program(
        network_->program(),
        network_->words_on(host) +
            Words{disttf_binary(), command, "--task_index=" + std::to_string(index),
                  "--ps_hosts=ps0:2222,ps1:2222", "--worker_hosts=" + workers_, secret_} +
            data_flags() + more,
        command + " " + std::to_string(index) + " on " + host);
  }
  Tasks start_all(const Words& more) {
    Tasks tasks;
    for (std::size_t index = 0; index < 2; ++index) {
      tasks.ps.push_back(&start(Job::kPs, index, more));
    }
    for (std::size_t index = 0; index < kWorkers; ++index) {
      tasks.trainers.push_back(&start(Job::kWorker, index, more));
    }
    return tasks;
  }
  // Starts the run; both hosts push one sum.
  Tasks start_training(const Words& more = {}) {
    Tasks tasks = start_all(kRun + kSlowly + more);
    EXPECT_TRUE(says(*tasks.trainers[0], kOneSum));
    EXPECT_TRUE(says(*tasks.trainers[kOnAHost], kOneSum));
    return tasks;
  }
  void kill_and_start_again(Tasks& tasks, std::size_t worker) {
    tasks.trainers[worker]->send(SIGKILL);
    ASSERT_TRUE(killed(*tasks.trainers[worker], SIGKILL));
    tasks.trainers[worker] = &start(Job::kWorker, worker, kRun + kSlowly);
  }
  // The result is bit-identical to that of workers that push their own gradients.
  void expect_undisturbed(const Tasks& tasks) {
    EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
    expect_weights_of_launch(tasks.trainers, Words{"--workers=8", "--transport=tcp"} + kRun);
  }
  // The share of all gradients of the host's workers that the host has sent.
  [[nodiscard]] double share_sent(const std::string& host) const {
    return static_cast<double>(network_->sent_by(host)) /
           static_cast<double>(kSteps * kOnAHost * kGradientBytes);
  }

  std::unique_ptr<Network> network_;

 private:
  const std::string workers_ =
      "one:1001,one:1002,one:1003,one:1004,two:1001,two:1002,two:1003,two:1004";
  const std::string secret_ = "--secret_file=" + write_secret(scratch());
};

// Slow, so that the steps before all workers have found each other are few on any machine.
TEST_F(HostGroupTest, AHostSendsAndIsSentAsMuchAsOneWorker) {
  const Tasks tasks = start_all(kRun + kSlowly);
  EXPECT_TRUE(says(*tasks.trainers[0], kOneSum));
  EXPECT_TRUE(says(*tasks.trainers[kOnAHost], kOneSum));
  expect_undisturbed(tasks);
  for (Process* worker : tasks.trainers) {
    EXPECT_EQ(count_of(worker->standard_error(), " W "), 0U) << worker->standard_error();
  }
  // A quarter, plus the first steps, before all workers have found each other.
  EXPECT_LT(share_sent("one"), 0.4);
  EXPECT_LT(share_sent("two"), 0.4);
  EXPECT_LT((share_sent("ps0") + share_sent("ps1")) / 2, 0.4);
}

TEST_F(HostGroupTest, NoneDoesWithoutSharedMemory) {
  const Tasks tasks = start_all(kRun + Words{"--transport=tcp"});
  expect_undisturbed(tasks);
  EXPECT_GT(share_sent("one"), 1.0);
  EXPECT_THAT(tasks.chief().standard_error(), ::testing::Not(::testing::HasSubstr(kOneSum)));
}

TEST_F(HostGroupTest, ALeaderIsKilled) {
  Tasks tasks = start_training();
  kill_and_start_again(tasks, kOnAHost);
  EXPECT_TRUE(says(*tasks.trainers[kOnAHost], kOneSum)) << "the restarted worker rejoins its group";
  expect_undisturbed(tasks);
}

TEST_F(HostGroupTest, AMemberIsKilled) {
  Tasks tasks = start_training();
  kill_and_start_again(tasks, kOnAHost + 2);
  expect_undisturbed(tasks);
}

TEST_F(HostGroupTest, TheChiefIsKilled) {
  Tasks tasks = start_training({"--peer_timeout=30"});
  kill_and_start_again(tasks, 0);
  EXPECT_TRUE(says(*tasks.trainers[0], kOneSum));
  expect_undisturbed(tasks);
}

TEST_F(HostGroupTest, APsIsKilled) {
  Tasks tasks = start_training();
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &start(Job::kPs, 1, kRun + kSlowly);
  expect_undisturbed(tasks);
}

// The leader stops until the ps has received nothing from it for three seconds; its members wait no
// longer than that.
TEST_F(HostGroupTest, ALeaderStandsStill) {
  Tasks tasks = start_training();
  tasks.trainers[kOnAHost]->send(SIGSTOP);
  EXPECT_TRUE(says(*tasks.ps[0], "worker 4 .* was lost"));
  tasks.trainers[kOnAHost]->send(SIGCONT);
  expect_undisturbed(tasks);
}

// Its members wait no longer than a ps does, while another process takes the leader's place on
// another host.
TEST_F(HostGroupTest, ALeaderThatStandsStillIsReplacedOnAnotherHost) {
  Tasks tasks = start_training();
  Process& old = *tasks.trainers[kOnAHost];
  old.send(SIGSTOP);
  EXPECT_TRUE(says(*tasks.ps[0], "worker 4 .* was lost"));
  tasks.trainers[kOnAHost] = &start_on("spare", Job::kWorker, kOnAHost, kRun + kSlowly);
  EXPECT_TRUE(says(*tasks.trainers[kOnAHost], "training step .* done"));
  old.send(SIGCONT);
  EXPECT_TRUE(exits(old, kExitLostPeers));
  expect_undisturbed(tasks);
}

// Gradients of more than a megabyte per ps, which are otherwise sent while they are computed.
TEST_F(HostGroupTest, LargeGradientsAreAddedUpBeforeTheyAreSent) {
  const Words flags = {"--hidden_units=800", "--train_steps=40", "--print_weights_hash",
                       "--heartbeat_timeout=10"};
  const Tasks tasks = start_all(flags);
  EXPECT_TRUE(says(*tasks.trainers[0], kOneSum));
  EXPECT_TRUE(says(*tasks.trainers[kOnAHost], kOneSum));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--workers=8", "--transport=tcp"} + flags);
  for (Process* worker : tasks.trainers) {
    EXPECT_EQ(count_of(worker->standard_error(), " W "), 0U) << worker->standard_error();
  }
}

TEST_F(HostGroupTest, AMemberStandsStill) {
  Tasks tasks = start_training();
  tasks.trainers[2]->send(SIGSTOP);
  EXPECT_TRUE(says(*tasks.ps[0], "worker 2 .* was lost"));
  tasks.trainers[2]->send(SIGCONT);
  expect_undisturbed(tasks);
}

TEST_F(HostGroupTest, ARunWithReplicasLosesAPs) {
  Tasks tasks = start_training({"--ps_replicas=2"});
  for (const char* range : {"0", "1"}) {
    ASSERT_TRUE(says(tasks.chief(), std::string("range ") + range + ": view .* with a backup"));
  }
  tasks.ps[0]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[0], SIGKILL));
  tasks.ps[0] = &start(Job::kPs, 0, kRun + kSlowly + Words{"--ps_replicas=2"});
  expect_undisturbed(tasks);
}

}  // namespace
}  // namespace disttf::test_process
