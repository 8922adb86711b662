// `disttf server` and `disttf plus`: a cluster of tasks that wait for requests, and its smoke test.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

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
