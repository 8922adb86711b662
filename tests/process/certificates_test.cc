// A run whose tasks have certificates. tests/net/task_certificates_test.cc tests with sockets what
// they protect; this test checks that a run with them gives the same result, and that no task can
// act as another.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/process/process_test.h"
#include "tests/support/made_identities.h"

namespace disttf::test_process {
namespace {

using net::Job;
using ::testing::HasSubstr;

const Words kRun = {"--train_steps=100", "--print_weights_hash"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10"};

class TaskCertificates : public ProcessTest {
 protected:
  void SetUp() override {
    Process& makes =
        run_program(test_support::identity_maker(), {"tasks", (scratch() / "made").string()});
    ASSERT_TRUE(exits(makes, kExitDone));
  }
  [[nodiscard]] std::string made(const std::string& name) const {
    return (scratch() / "made" / name).string();
  }
  [[nodiscard]] Words certificate(const std::string& name, const std::string& ca = "ca.pem") const {
    return {"--task_cert=" + made(name + ".pem"), "--task_key=" + made(name + ".key"),
            "--task_ca=" + made(ca)};
  }
  // Starts one ps and two workers, the first of which is the chief.
  Tasks run_with_certificates(const ClusterOnLoopback& cluster, const Words& flags) {
    Tasks tasks;
    tasks.ps = {&run_task(cluster, Job::kPs, 0, certificate("ps-0"))};
    tasks.trainers = {&run_task(cluster, Job::kWorker, 0, flags + certificate("worker-0")),
                      &run_task(cluster, Job::kWorker, 1, flags + certificate("worker-1"))};
    return tasks;
  }
  // Writes both authorities into one file.
  void concatenate() {
    std::ofstream(made("both.pem"))
        << std::ifstream(made("ca.pem")).rdbuf() << std::ifstream(made("foreign-ca.pem")).rdbuf();
  }
  void replace(const std::string& name, const std::string& by) {
    std::filesystem::copy_file(made(by), made("next"));
    std::filesystem::rename(made("next"), made(name));
  }

  const ClusterOnLoopback cluster_{{.ps = 1, .workers = 2}};
};

TEST_F(TaskCertificates, ARunWithThemIsTheSameRun) {
  for (const char* transport : {"--transport=tcp", "--transport=auto"}) {
    const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
    const Tasks tasks = run_with_certificates(cluster, kRun + Words{transport});
    EXPECT_TRUE(all_exit(tasks.all(), kExitDone)) << transport;
    expect_weights_of_launch(tasks.trainers, kRun + Words{"--workers=2"});
  }
}

TEST_F(TaskCertificates, LetNoWorkerBeTheChief) {
  Process& ps = run_task(cluster_, Job::kPs, 0, certificate("ps-0"));
  Process& impostor = run_task(cluster_, Job::kWorker, 0, kRun + certificate("worker-1"));
  EXPECT_TRUE(exits(impostor, kExitUsage));
  EXPECT_THAT(impostor.standard_error(),
              HasSubstr("is of spiffe://test/mnist/worker/1, and this task is worker 0"));
  Process& chief = run_task(cluster_, Job::kWorker, 0, kRun + certificate("worker-0"));
  ASSERT_TRUE(says(ps, "worker 0 .* joined"));
  concatenate();
  for (const auto& [flags, why] : {std::pair{certificate("other-run"), "is not the expected task"},
                                   {certificate("foreign", "both.pem"), "rejects the certificate"},
                                   {Words{}, "accepts only peers that have a certificate"}}) {
    Process& outsider = run_task(cluster_, Job::kWorker, 1, kRun + flags);
    EXPECT_TRUE(exits(outsider, kExitUsage));
    EXPECT_THAT(outsider.standard_error(), HasSubstr(why));
  }
  Process& worker = run_task(cluster_, Job::kWorker, 1, kRun + certificate("worker"));
  EXPECT_TRUE(all_exit({&ps, &chief, &worker}, kExitDone));
  expect_weights_of_launch({&chief, &worker}, kRun + Words{"--workers=2"});
}

TEST_F(TaskCertificates, AreRenewedWhileTasksAreKilled) {
  const Words flags = kRun + kSlowly + Words{"--transport=tcp"};
  Tasks tasks = run_with_certificates(cluster_, flags);
  ASSERT_TRUE(says(tasks.chief(), "training step 10 done"));
  concatenate();
  // The chief keeps running, and must accept certificates of the next authority.
  replace("ca.pem", "both.pem");
  for (const auto& [name, next] : {std::pair{"worker-1", "foreign"}, {"ps-0", "foreign-ps"}}) {
    replace(name + std::string(".pem"), next + std::string(".pem"));
    replace(name + std::string(".key"), next + std::string(".key"));
  }
  for (Process* task : {tasks.ps[0], tasks.trainers[1]}) {
    task->send(SIGKILL);
    ASSERT_TRUE(killed(*task, SIGKILL));
  }
  tasks.ps[0] = &run_task(cluster_, Job::kPs, 0, certificate("ps-0"));
  tasks.trainers[1] = &run_task(cluster_, Job::kWorker, 1, flags + certificate("worker-1"));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, kRun + Words{"--workers=2"});
}

TEST_F(TaskCertificates, ServersTheirDriverAndWhoLooksOnHaveThem) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  std::vector<Process*> servers;
  for (const std::string job : {"ps", "worker"}) {
    servers.push_back(&run("server " + job,
                           Words{"server", "--job_name=" + job, "--task_index=0", data_dir_flag()} +
                               cluster.host_flags() + certificate(job + "-0")));
  }
  Process& plus = run("plus", Words{"plus"} + cluster.host_flags() + certificate("evaluator-0"));
  EXPECT_TRUE(exits(plus, kExitDone));
  EXPECT_EQ(plus.standard_output(), "42\n");
  Process& outsider = run("stranger", Words{"plus"} + cluster.host_flags() + certificate("worker"));
  EXPECT_TRUE(exits(outsider, kExitUsage));
  EXPECT_THAT(outsider.standard_error(), HasSubstr("and this task is evaluator 0"));
  Process& driver = run("driver", Words{"train", "--existing_servers"} + cluster.host_flags() +
                                      data_flags() + kRun + certificate("chief-0"));
  EXPECT_TRUE(exits(driver, kExitDone));
  expect_weights_of_launch({&driver}, kRun + Words{"--workers=1", "--chief"});
  for (Process* server : servers) {
    server->send(SIGTERM);
    EXPECT_TRUE(exits(*server, kExitDone));
  }
}

}  // namespace
}  // namespace disttf::test_process
