// `disttf train --existing_servers`: one process trains on a cluster of servers.
#include <csignal>

#include "net/wire/server_requests.h"
#include "tests/process/process_test.h"
#include "tests/process/raw_peer.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Words kRun = {"--train_steps=60", "--print_weights_hash"};
// The driver is the chief, which also trains.
const Words kSameByLaunch = Words{"--ps=2", "--workers=2", "--chief"} + kRun;
// Long enough that the test can disturb the run before it ends.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10"};

class Driver : public ProcessTest {
 protected:
  Process& start_server(net::Job job, std::size_t index, const Words& more = {}) {
    const std::string name(net::job_name(job));
    return run("server " + name + " " + std::to_string(index),
               Words{"server", "--job_name=" + name, "--task_index=" + std::to_string(index),
                     data_dir_flag(), "--heartbeat_timeout=3"} +
                   cluster_.host_flags() + more);
  }
  void start_servers() {
    for (std::size_t index = 0; index < 2; ++index) {
      ps_.push_back(&start_server(net::Job::kPs, index));
      workers_.push_back(&start_server(net::Job::kWorker, index));
    }
    for (Process* server : servers()) {
      EXPECT_TRUE(says(*server, "Waiting for requests"));
    }
  }
  Process& drive(const Words& more = kRun) {
    return run("driver", Words{"train", "--existing_servers", "--heartbeat_timeout=3"} +
                             cluster_.host_flags() + data_flags() + more);
  }
  // Starts a training and waits until all tasks train.
  Process& start_training() {
    start_servers();
    Process& driver = drive(kRun + kSlowly);
    EXPECT_TRUE(says(driver, "training step 5 done"));
    return driver;
  }
  [[nodiscard]] std::vector<Process*> servers() const {
    std::vector<Process*> all = ps_;
    all.insert(all.end(), workers_.begin(), workers_.end());
    return all;
  }
  // Expects that all servers have trained `times` times and wait again.
  void expect_waiting(std::size_t times) {
    for (Process* server : servers()) {
      EXPECT_TRUE(says_times(*server, times, "Waiting for requests"));
      EXPECT_TRUE(wait_until_gone(children_of(server->pid())));
    }
  }
  void expect_result(Process& driver, const Words& same_by_launch = kSameByLaunch) {
    EXPECT_TRUE(exits(driver, kExitDone));
    EXPECT_THAT(driver.standard_output(), HasSubstr(data_name() + " accuracy: 0."));
    expect_weights_of_launch({&driver}, same_by_launch);
  }
  // Throws if there is none: kill() takes -1 and 0 for all processes.
  static pid_t child_of(const Process& server) {
    const std::vector<pid_t> children = children_of(server.pid());
    EXPECT_EQ(children.size(), 1U);
    return children.at(0);
  }

  const ClusterOnLoopback cluster_{{.ps = 2, .workers = 2}};
  std::vector<Process*> ps_;
  std::vector<Process*> workers_;
};

TEST_F(Driver, TrainsOnServersTwiceAndLeavesThemWaiting) {
  start_servers();
  for (std::size_t runs = 1; runs <= 2; ++runs) {
    expect_result(drive());
    expect_waiting(runs + 1);
  }
  Process& sum = run("plus", Words{"plus"} + cluster_.host_flags());
  EXPECT_TRUE(exits(sum, kExitDone));
  EXPECT_EQ(sum.standard_output(), "42\n");
  for (Process* server : servers()) {
    server->send(SIGTERM);
  }
  EXPECT_TRUE(all_exit(servers(), kExitDone));
}

TEST_F(Driver, NamesTheServersThatAreNotThere) {
  start_server(net::Job::kPs, 0);
  start_server(net::Job::kWorker, 1);
  Process& driver = drive(kRun + Words{"--start_timeout=1"});
  EXPECT_TRUE(exits(driver, kExitLostPeers));
  EXPECT_TRUE(says(driver, "not connected after 1 s: ps 1 \\(" +
                               cluster_.address(net::Job::kPs, 1) +
                               "\\): Connection refused; worker 0 .*: Connection refused"));
}

TEST_F(Driver, StartsATaskAgainThatWasKilled) {
  Process& driver = start_training();
  kill(child_of(*workers_[1]), SIGKILL);
  EXPECT_TRUE(says(driver, "worker 1 .* was killed by signal 9 .*; starting it again \\(1 of 10"));
  kill(child_of(*ps_[1]), SIGKILL);
  EXPECT_TRUE(says(driver, "ps 1 .* was killed by signal 9 .*; starting it again \\(2 of 10"));
  expect_result(driver);
  expect_waiting(2);
}

// Kills the server and its task at once, like a restart of the machine.
TEST_F(Driver, TrainsOnWithAServerThatComesBack) {
  Process& driver = start_training();
  workers_[0]->send(SIGKILL);
  EXPECT_TRUE(killed(*workers_[0], SIGKILL));
  ps_[0]->send(SIGKILL);
  EXPECT_TRUE(killed(*ps_[0], SIGKILL));
  EXPECT_TRUE(says(driver, "worker 0 .* was lost; starting it again"));
  EXPECT_TRUE(says(driver, "ps 0 .* was lost; starting it again"));
  workers_.erase(workers_.begin());
  ps_.erase(ps_.begin());
  Process& worker = start_server(net::Job::kWorker, 0);
  Process& ps = start_server(net::Job::kPs, 0);
  expect_result(driver);
  EXPECT_TRUE(says_times(ps, 2, "Waiting for requests"));
  EXPECT_TRUE(says_times(worker, 2, "Waiting for requests"));
  expect_waiting(2);
}

// Its task trains on for a request whose channel the driver has closed, and still has the port.
TEST_F(Driver, TrainsOnWithAServerThatWasFrozen) {
  start_servers();
  Process& driver = drive(Words{"--train_steps=1000", "--print_weights_hash"} + kSlowly);
  EXPECT_TRUE(says(driver, "training step 5 done"));
  workers_[1]->send(SIGSTOP);
  EXPECT_TRUE(says(driver, "worker 1 .* was lost; starting it again"));
  EXPECT_TRUE(says(driver, "worker 1 .* is still busy with this driver's last request"));
  workers_[1]->send(SIGCONT);
  EXPECT_TRUE(says(*workers_[1], "the driver was lost; stopping its task"));
  EXPECT_TRUE(says_times(*workers_[1], 2, "training for "));
  expect_result(driver, Words{"--ps=2", "--workers=2", "--chief", "--train_steps=1000",
                              "--print_weights_hash"});
  EXPECT_TRUE(says_times(*workers_[1], 3, "Waiting for requests"));
}

// To this driver it looks as if another driver had taken the server.
TEST_F(Driver, GivesUpAServerWhoseTaskDoesNotEnd) {
  start_servers();
  Process& driver = drive(endless() + Words{"--peer_timeout=2"});
  EXPECT_TRUE(says(driver, "training step 5 done"));
  workers_[1]->send(SIGSTOP);
  EXPECT_TRUE(exits(driver, kExitLostPeers));
  EXPECT_TRUE(says(driver, "worker 1 .* has been gone for 2 s: its reply: worker 1 .* is busy"));
  workers_[1]->send(SIGCONT);
  expect_waiting(2);
}

TEST_F(Driver, GivesUpAServerThatStaysAway) {
  start_servers();
  Process& driver = drive(kRun + kSlowly + Words{"--peer_timeout=2"});
  EXPECT_TRUE(says(driver, "training step 5 done"));
  workers_[0]->send(SIGKILL);
  EXPECT_TRUE(exits(driver, kExitLostPeers));
  EXPECT_TRUE(says(driver, "worker 0 .* has been gone for 2 s: Connection refused"));
  workers_.erase(workers_.begin());
  expect_waiting(2);
}

// A driver's tasks end when its channels close.
TEST_F(Driver, TasksEndWithItAndTheServersWaitForTheNext) {
  Process& driver = start_training();
  driver.send(SIGKILL);
  EXPECT_TRUE(killed(driver, SIGKILL));
  for (Process* server : servers()) {
    EXPECT_TRUE(says(*server, "the driver was lost; stopping its task"));
  }
  expect_waiting(2);
  expect_result(drive());
}

// A frozen driver counts as dead.
TEST_F(Driver, TasksEndWhenItIsSilent) {
  Process& driver = start_training();
  driver.send(SIGSTOP);
  expect_waiting(2);
  driver.send(SIGCONT);
  EXPECT_TRUE(says(driver, " was lost; starting it again"));
  driver.send(SIGTERM);
  EXPECT_TRUE(exits(driver, kExitTerminated));
}

TEST_F(Driver, SignalsEndTheRunAndTheTasks) {
  Process& driver = start_training();
  driver.send(SIGINT);
  EXPECT_TRUE(exits(driver, kExitInterrupted));
  expect_waiting(2);
}

TEST_F(Driver, EndsWhenATaskFailsForGood) {
  ps_ = {&start_server(net::Job::kPs, 0), &start_server(net::Job::kPs, 1)};
  workers_ = {&start_server(net::Job::kWorker, 0),
              &start_server(net::Job::kWorker, 1, {"--dataset=digits", "--transport=tcp"})};
  if (!has_mnist()) {
    GTEST_SKIP() << "the tasks' data sets differ only where MNIST is available";
  }
  Process& driver = drive();
  EXPECT_TRUE(exits(driver, kExitBadData));
  EXPECT_TRUE(says(driver,
                   "worker 1 .* ended with exit code 3; stopping the others: --dataset: "
                   "the chief trains on MNIST"));
  expect_waiting(2);
}

TEST_F(Driver, ASecondOneIsToldThatTheServersAreAtWork) {
  Process& driver = start_training();
  Process& second = drive();
  EXPECT_TRUE(exits(second, kExitLostPeers));
  EXPECT_TRUE(says(second, "replied: .* is busy"));
  expect_result(driver);
}

TEST_F(Driver, ServersTrainOnTheDriversDataSet) {
  start_servers();
  Process& driver = run("driver", Words{"train", "--existing_servers", "--dataset=digits"} +
                                      cluster_.host_flags() + kRun);
  EXPECT_TRUE(exits(driver, kExitDone));
  EXPECT_THAT(driver.standard_output(), HasSubstr("Digits accuracy: 0."));
}

TEST_F(Driver, KeepsCheckpointsAndGoesOnFromThem) {
  start_servers();
  const Words train_dir = {"--train_dir=" + (scratch() / "run").string()};
  Process& driver = drive(kRun + kSlowly + train_dir);
  EXPECT_TRUE(says(driver, "training step 15 done"));
  driver.send(SIGTERM);
  EXPECT_TRUE(exits(driver, kExitTerminated));
  expect_waiting(2);
  Process& next = drive(kRun + train_dir);
  EXPECT_TRUE(says(next, "Training begins at global step [1-9]"));
  expect_result(next);
}

TEST_F(Driver, SavesTheStepAtWhichItIsStopped) {
  start_servers();
  const Words train_dir = {"--train_dir=" + (scratch() / "run").string()};
  Process& driver = drive(endless() + Words{"--save_secs=0", "--save_steps=0"} + train_dir);
  EXPECT_TRUE(says(driver, "training step 15 done"));
  driver.send(SIGINT);
  EXPECT_TRUE(exits(driver, kExitInterrupted));
  const std::string saved =
      captured(driver.standard_error(), "Saved checkpoint at global step ([0-9]+)");
  expect_waiting(2);
  Process& next =
      drive(Words{"--train_steps=" + std::to_string(std::stoul("0" + saved) + 5)} + train_dir);
  EXPECT_TRUE(says(next, "Training begins at global step " + saved + "$"));
  EXPECT_TRUE(exits(next, kExitDone));
}

// Requests that a server must reject: all but its own task of a run on its own lists.
TEST_F(Driver, ServersRefuseInvalidRequests) {
  start_servers();
  const net::Hello hello{.cluster = net::hash_of(cluster_.tasks()),
                         .from = {.job = net::Job::kEvaluator, .index = 0},
                         .to = {.job = net::Job::kPs, .index = 0},
                         .purpose = net::ChannelPurpose::kRequest};
  const std::uint16_t port = cluster_.tasks().ps[0].port;
  const Bytes good = net::encode(net::RunTaskRequest{});
  Bytes with_words = good;
  for (const std::byte byte : bytes_of(" --train_dir=/tmp/mine")) {
    with_words.push_back(byte);
  }
  const Bytes endless(net::kMaxControlBodyBytes, std::byte{1});
  const Bytes of_other_data = net::encode(net::RunTaskRequest{.data = 200});
  for (const Bytes& body : {Bytes{}, with_words, of_other_data, endless}) {
    const RawPeer peer(port);
    peer.write(hello_frame(hello));
    peer.write(frame({.kind = net::FrameKind::kRunTask}, body));
    bool timed_out = false;
    const auto refusal = refusal_in(peer.read_to_end(kPatience, timed_out));
    ASSERT_TRUE(refusal);
    EXPECT_THAT(refusal->sentence, HasSubstr("received an invalid request"));
  }
  EXPECT_THAT(ps_[0]->standard_error(), Not(HasSubstr("training for ")));
  EXPECT_TRUE(children_of(ps_[0]->pid()).empty());
  expect_result(drive());
}

TEST_F(Driver, TwoRequestsOnOneChannelAreOneTooMany) {
  start_servers();
  const RawPeer peer(cluster_.tasks().ps[0].port);
  peer.write(hello_frame({.cluster = net::hash_of(cluster_.tasks()),
                          .from = {.job = net::Job::kEvaluator, .index = 0},
                          .to = {.job = net::Job::kPs, .index = 0},
                          .purpose = net::ChannelPurpose::kRequest}));
  const Bytes order = frame({.kind = net::FrameKind::kRunTask}, net::encode(net::RunTaskRequest{}));
  peer.write(order);
  peer.write(order);
  bool timed_out = false;
  const auto refusal = refusal_in(peer.read_to_end(kPatience, timed_out));
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->sentence, HasSubstr("is busy"));
  EXPECT_TRUE(says_times(*ps_[0], 2, "Waiting for requests"));
  EXPECT_TRUE(children_of(ps_[0]->pid()).empty());
}

TEST_F(Driver, IsNoneOfTheListedTasks) {
  for (const char* flag : {"--job_name=worker", "--task_index=0", "--chief_host=a:1",
                           "--on_finish=idle", "--sharded_checkpoint", "--max_workers=3"}) {
    Process& driver = drive(Words{flag, "--train_dir=" + scratch().string()});
    EXPECT_TRUE(exits(driver, kExitUsage)) << flag;
    EXPECT_TRUE(says(driver, "not allowed with --existing_servers")) << flag;
  }
}

// `disttf server` and `disttf plus`: a cluster of tasks that wait for requests, and its smoke test.

using ::testing::MatchesRegex;

class Plus : public ProcessTest {
 protected:
  Process& start_server(const ClusterOnLoopback& cluster, net::Job job, std::size_t index,
                        const Words& more = {}) {
    const std::string name(net::job_name(job));
    return run(name + " " + std::to_string(index),
               Words{"server", "--job_name=" + name, "--task_index=" + std::to_string(index)} +
                   cluster.host_flags() + more);
  }
  // Starts the servers and waits until all of them wait for requests.
  std::vector<Process*> start_servers(const ClusterOnLoopback& cluster) {
    std::vector<Process*> servers;
    for (std::size_t index = 0; index < 2; ++index) {
      servers.push_back(&start_server(cluster, net::Job::kPs, index));
      servers.push_back(&start_server(cluster, net::Job::kWorker, index));
    }
    for (Process* server : servers) {
      EXPECT_TRUE(says(*server, "Waiting for requests"));
    }
    return servers;
  }
  Process& plus(const ClusterOnLoopback& cluster, const Words& more = {}) {
    return run("plus", Words{"plus"} + cluster.host_flags() + more);
  }

  const ClusterOnLoopback cluster_{{.ps = 2, .workers = 2}};
};

TEST_F(Plus, Is42) {
  const std::vector<Process*> servers = start_servers(cluster_);
  Process& sum = plus(cluster_);
  EXPECT_TRUE(exits(sum, kExitDone));
  EXPECT_EQ(sum.standard_output(), "42\n");
  // At the task that was named.
  EXPECT_TRUE(says(*servers[3], "sum: 42"));
  EXPECT_THAT(servers[1]->standard_error(), Not(HasSubstr("sum: ")));
}

TEST_F(Plus, TellsRoundTripVersionAndReachOfEachTask) {
  start_servers(cluster_);
  Process& sum = plus(cluster_, {"--verbose"});
  EXPECT_TRUE(exits(sum, kExitDone));
  std::string row = ": [0-9]+\\.[0-9]+ ms, disttf [^ ]+, reaches all others\n";
  std::string table;
  for (const char* name : {"ps 0", "ps 1", "worker 0", "worker 1"}) {
    table += std::string(name) + " \\(127\\.0\\.0\\.1:[0-9]+\\)" + row;
  }
  EXPECT_THAT(
      sum.standard_output(),
      MatchesRegex(table + "10 on ps 0 plus 32 on ps 1, added on worker 1, asked of worker 0:\n"
                           "42\n"));
}

TEST_F(Plus, WaitsForServersThatComeLater) {
  Process& sum = plus(cluster_, {"--wait=60"});
  start_servers(cluster_);
  EXPECT_TRUE(exits(sum, kExitDone));
  EXPECT_EQ(sum.standard_output(), "42\n");
}

TEST_F(Plus, NamesTheTaskThatIsNotThere) {
  const std::vector<Process*> servers = start_servers(cluster_);
  servers[2]->send(SIGTERM);  // ps 1
  EXPECT_TRUE(exits(*servers[2], kExitDone));
  Process& sum = plus(cluster_, {"--wait=0", "--verbose"});
  EXPECT_TRUE(exits(sum, kExitLostPeers));
  const std::string ps1 = "ps 1 (" + cluster_.address(net::Job::kPs, 1) + ")";
  EXPECT_THAT(sum.standard_output(), HasSubstr(ps1 + ": cannot be reached: Connection refused\n"));
  EXPECT_THAT(sum.standard_output(), HasSubstr(" cannot reach " + ps1 + ": Connection refused\n"));
  EXPECT_THAT(sum.standard_output(), Not(HasSubstr("42\n")));
  EXPECT_THAT(sum.standard_error(), HasSubstr("not connected after 0 s: " + ps1));
}

// A server is frozen during a request: no process waits for ever.
TEST_F(Plus, GivesUpAServerThatIsSilent) {
  const std::vector<Process*> servers = start_servers(cluster_);
  servers[0]->send(SIGSTOP);
  Process& sum = plus(cluster_, {"--wait=0", "--heartbeat_timeout=2"});
  EXPECT_TRUE(exits(sum, kExitLostPeers));
  servers[0]->send(SIGCONT);
}

TEST_F(Plus, IsToldThatItsListsDiffer) {
  start_servers(cluster_);
  Process& sum = run("plus", {"plus", "--ps_hosts=" + cluster_.address(net::Job::kPs, 0),
                              "--worker_hosts=" + cluster_.address(net::Job::kWorker, 0)});
  EXPECT_TRUE(exits(sum, kExitUsage));
  EXPECT_TRUE(says(sum, "ps 0 .* replied: your address lists .* differ"));
}

TEST_F(Plus, NeedsOnePsAndOneWorkerAtLeast) {
  const ClusterOnLoopback small{{.ps = 1, .workers = 1}};
  start_server(small, net::Job::kPs, 0);
  start_server(small, net::Job::kWorker, 0);
  Process& sum = plus(small);
  EXPECT_TRUE(exits(sum, kExitDone));
  EXPECT_EQ(sum.standard_output(), "42\n");
  Process& nowhere = run("plus", {"plus"});
  EXPECT_TRUE(exits(nowhere, kExitUsage));
  EXPECT_TRUE(says(nowhere, "--ps_hosts: missing"));
}

TEST_F(Plus, FindsTheClusterInTfConfig) {
  start_servers(cluster_);
  Process& sum = run("plus", {"plus"}, {{"TF_CONFIG", cluster_.tf_config("worker", 0)}});
  EXPECT_TRUE(exits(sum, kExitDone));
  EXPECT_EQ(sum.standard_output(), "42\n");
}

// Training tasks and waiting servers identify each other.
TEST_F(Plus, AndTrainingTasksRefuseEachOther) {
  start_servers(cluster_);
  Process& sum = plus(cluster_);
  EXPECT_TRUE(exits(sum, kExitDone));
  const ClusterOnLoopback trained{{.ps = 1, .workers = 1}};
  Process& ps = run_task(trained, net::Job::kPs, 0);
  ASSERT_TRUE(says(ps, "Started server"));
  Process& refused = plus(trained);
  EXPECT_TRUE(exits(refused, kExitUsage));
  EXPECT_TRUE(says(refused, "ps 0 .* trains; only disttf server takes requests to train"));
  const ClusterOnLoopback mixed{{.ps = 1, .workers = 1}};
  start_server(mixed, net::Job::kPs, 0);
  Process& worker = run_task(mixed, net::Job::kWorker, 0);
  EXPECT_TRUE(exits(worker, kExitUsage));
  EXPECT_TRUE(says(worker, "is a server, which waits for requests and does not train"));
}

}  // namespace
}  // namespace disttf::test_process
