// A run whose tasks share a secret. tests/net/tls_test.cc tests with sockets what it protects; this
// test checks that a run with one gives the same result, and that other peers are rejected.
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
using ::testing::Not;

const Words kRun = {"--train_steps=100", "--print_weights_hash"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10"};
constexpr const char* kOne = "the first secret of this test, long enough";
constexpr const char* kOther = "another secret of this test, long enough";

class Secret : public ProcessTest {
 protected:
  // Writes a file that only its owner can read, and replaces an older one atomically.
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path made = scratch() / (name + ".new");
    std::ofstream(made) << text << '\n';
    std::filesystem::permissions(made, std::filesystem::perms::owner_read);
    std::filesystem::rename(made, scratch() / name);
  }
  [[nodiscard]] Words secret_in(const std::string& name) const {
    return {"--secret_file=" + (scratch() / name).string()};
  }
  Process& launch(const Words& flags) {
    return run("launch", Words{"launch", "--workers=2"} + flags + data_flags());
  }
  // Returns the lists of a launch, for a client from outside.
  Words hosts_of(const std::string& control) {
    Process& endpoints = run("endpoints", {"endpoints", "--control=" + control});
    EXPECT_TRUE(exits(endpoints, kExitDone));
    const std::string addresses = endpoints.standard_output();
    return {"--ps_hosts=" + captured(addresses, "ps +([0-9.:,]+)"),
            "--worker_hosts=" + captured(addresses, "worker +([0-9.:,]+)")};
  }
  // Expects that a worker is rejected; its run continues to its end.
  void expect_refused(const Words& flags, const std::string& why) {
    write("one", kOne);
    write("other", kOther);
    const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
    Process& ps = run_task(cluster, Job::kPs, 0, secret_in("one"));
    Process& chief = run_task(cluster, Job::kWorker, 0, kRun + secret_in("one"));
    ASSERT_TRUE(says(ps, "worker 0 .* joined"));
    Process& outsider = run_task(cluster, Job::kWorker, 1, kRun + flags);
    EXPECT_TRUE(exits(outsider, kExitUsage));
    EXPECT_THAT(outsider.standard_error(), HasSubstr(why));
    Process& worker = run_task(cluster, Job::kWorker, 1, kRun + secret_in("one"));
    EXPECT_TRUE(all_exit({&ps, &chief, &worker}, kExitDone));
    expect_weights_of_launch({&chief, &worker}, kRun + Words{"--workers=2"});
  }
};

TEST_F(Secret, ARunWithOneIsTheSameRun) {
  write("one", kOne);
  for (const char* transport : {"--transport=tcp", "--transport=auto"}) {
    const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
    const Tasks tasks = run_cluster(cluster, kRun + secret_in("one") + Words{transport});
    EXPECT_TRUE(all_exit(tasks.all(), kExitDone)) << transport;
    expect_weights_of_launch(tasks.trainers, kRun + Words{"--workers=2"});
  }
}

TEST_F(Secret, AnotherOneAdmitsNoPeer) {
  expect_refused(secret_in("other"),
                 "has another secret: the secret of this task has the fingerprint");
}

TEST_F(Secret, WithoutOneNoPeerIsAdmitted) {
  expect_refused({}, "give this task the same one (--secret_file or DISTTF_SECRET)");
}

TEST_F(Secret, ATaskWithOneRejectsTasksWithoutOne) {
  write("one", kOne);
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& ps = run_task(cluster, Job::kPs, 0);
  Process& worker = run_task(cluster, Job::kWorker, 0, kRun + secret_in("one"));
  EXPECT_TRUE(exits(worker, kExitUsage));
  EXPECT_THAT(worker.standard_error(), HasSubstr("secret"));
  ps.send(SIGTERM);
  EXPECT_TRUE(exits(ps, kExitTerminated));
}

TEST_F(Secret, MayBeAVariable) {
  Process& job =
      run("launch", Words{"launch", "--workers=2", "--transport=tcp"} + kRun + data_flags(),
          {{"DISTTF_SECRET", kOne}});
  ASSERT_TRUE(exits(job, kExitDone));
  Process& plain = launch(kRun + Words{"--insecure"});
  ASSERT_TRUE(exits(plain, kExitDone));
  EXPECT_EQ(weights_hash_in(job), weights_hash_in(plain));
}

TEST_F(Secret, OfALaunchIsForItsOwnTasksAndWhoIsToldOfIt) {
  const std::string control = (scratch() / "control").string();
  Process& job = launch(Words{"--control=" + control} + endless());
  ASSERT_TRUE(says(job, "training step 10 done"));
  const Words addresses = hosts_of(control);
  Process& outsider = run("stranger", Words{"evaluator"} + addresses + data_flags());
  EXPECT_TRUE(exits(outsider, kExitUsage));
  EXPECT_THAT(outsider.standard_error(),
              HasSubstr("give this task the same one (--secret_file or DISTTF_SECRET)"));
  Process& friendly = run("friend", Words{"evaluator", "--secret_file=" + control + ".secret"} +
                                        addresses + data_flags());
  EXPECT_TRUE(says(friendly, "accuracy"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_FALSE(std::filesystem::exists(control + ".secret"));
}

// The file belongs to its owner alone, and so does a process' environment.
TEST_F(Secret, OfALaunchIsSeenByItsUserAlone) {
  const std::string control = (scratch() / "control").string();
  Process& job = launch(Words{"--control=" + control} + endless());
  ASSERT_TRUE(says(job, "training step 10 done"));
  EXPECT_EQ(std::filesystem::status(control + ".secret").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::string secret;
  std::getline(std::ifstream(control + ".secret"), secret);
  ASSERT_EQ(secret.size(), 44U);
  std::vector<pid_t> processes = children_of(job.pid());
  EXPECT_EQ(processes.size(), 3U);
  processes.push_back(job.pid());
  for (const pid_t each : processes) {
    for (const std::string& word : command_line_of(each)) {
      EXPECT_THAT(word, Not(HasSubstr(secret)));
    }
  }
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
  EXPECT_THAT(job.report(), Not(HasSubstr(secret)));
}

TEST_F(Secret, OfALaunchChangesNoBitAndStaysWhenTasksDie) {
  Process& plain = launch(kRun + Words{"--insecure"});
  ASSERT_TRUE(exits(plain, kExitDone));
  for (const char* transport : {"--transport=tcp", "--transport=auto"}) {
    Process& job = launch(kRun + kSlowly + Words{transport, "--control=none"});
    ASSERT_TRUE(says(job, "training step 20 done"));
    for (const pid_t each : children_of(job.pid())) {
      const Words words = command_line_of(each);
      if (words.size() > 1 && (words[1] == "ps" || words[2] == "--task_index=1")) {
        kill(each, SIGKILL);
      }
    }
    EXPECT_TRUE(exits(job, kExitDone));
    EXPECT_THAT(job.standard_error(), HasSubstr("[ps:0] was killed by signal 9"));
    EXPECT_EQ(weights_hash_in(job), weights_hash_in(plain)) << transport;
  }
}

TEST_F(Secret, ALaunchMayHaveNone) {
  const std::string control = (scratch() / "control").string();
  Process& job = run(
      "launch", Words{"launch", "--insecure", "--control=" + control} + endless() + data_flags(),
      {{"DISTTF_SECRET", kOne}});
  ASSERT_TRUE(says(job, "training step 10 done"));
  EXPECT_FALSE(std::filesystem::exists(control + ".secret"));
  Process& anybody = run("anybody", Words{"evaluator"} + hosts_of(control) + data_flags());
  EXPECT_TRUE(says(anybody, "accuracy"));
  job.send(SIGTERM);
  EXPECT_TRUE(exits(job, kExitTerminated));
}

TEST_F(Secret, TasksOfACommandHaveOne) {
  const Words command = {"--", "/bin/sh", "-c",
                         "echo \"$TFMESOS_JOB_NAME has ${{#DISTTF_SECRET}} characters\""};
  Process& job = run("launch", Words{"launch", "-w", "1", "-s", "1"} + command);
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(job.standard_output(), HasSubstr("[worker:0] worker has 44 characters"));
  Process& plain = run("plain", Words{"launch", "-w", "1", "-s", "0", "--insecure"} + command,
                       {{"DISTTF_SECRET", kOne}});
  ASSERT_TRUE(exits(plain, kExitDone));
  EXPECT_THAT(plain.standard_output(), HasSubstr("[worker:0] worker has 0 characters"));
}

TEST_F(Secret, ThatOthersMayReadIsNone) {
  write("one", kOne);
  std::filesystem::permissions(scratch() / "one", std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& ps = run_task(cluster, Job::kPs, 0, secret_in("one"));
  EXPECT_TRUE(exits(ps, kExitUsage));
  EXPECT_THAT(ps.standard_error(), HasSubstr("its mode must be 0600 or 0400"));
}

TEST_F(Secret, AWorkerAndAPsMayBeKilled) {
  write("one", kOne);
  const Words flags = kRun + kSlowly + secret_in("one") + Words{"--transport=tcp"};
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_TRUE(says(tasks.chief(), "training step 20 done"));
  kill_and_start_again(cluster, tasks, secret_in("one"), flags);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, kRun + Words{"--workers=2"});
}

// First every task accepts both secrets, then each offers the new one, then none accepts the old
// one.
TEST_F(Secret, ChangesWhileTheRunGoesOn) {
  write("one", kOne);
  const Words flags = kRun + kSlowly + secret_in("one") + Words{"--transport=tcp"};
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_TRUE(says(tasks.chief(), "training step 10 done"));
  write("one", std::string(kOne) + "\n" + kOther);
  write("one", std::string(kOther) + "\n" + kOne);
  write("one", kOther);
  ASSERT_TRUE(says(tasks.chief(), "training step 20 done"));
  kill_and_start_again(cluster, tasks, secret_in("one"), flags);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, kRun + Words{"--workers=2"});
}

// The new secret is in the file of only one task, just when its peers reconnect.
TEST_F(Secret, AMistakeOnTheWayIsWaitedFor) {
  write("one", kOne);
  write("of the ps", kOne);
  const Words flags = kRun + kSlowly + Words{"--transport=tcp"};
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  Process& first = run_task(cluster, Job::kPs, 0, secret_in("of the ps"));
  Process& chief = run_task(cluster, Job::kWorker, 0, flags + secret_in("one"));
  Process& worker = run_task(cluster, Job::kWorker, 1, flags + secret_in("one"));
  ASSERT_TRUE(says(chief, "training step 10 done"));
  write("of the ps", kOther);
  first.send(SIGKILL);
  ASSERT_TRUE(killed(first, SIGKILL));
  Process& second = run_task(cluster, Job::kPs, 0, secret_in("of the ps"));
  ASSERT_TRUE(says(chief, "waits for ps 0 .*: the peer has another secret now"));
  ASSERT_TRUE(says(second, "its secret has the fingerprint"));
  write("of the ps", kOne);
  EXPECT_TRUE(all_exit({&second, &chief, &worker}, kExitDone));
  expect_weights_of_launch({&chief, &worker}, kRun + Words{"--workers=2"});
}

TEST_F(Secret, ServersAndTheirDriverHaveOne) {
  write("one", kOne);
  write("other", kOther);
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  std::vector<Process*> servers;
  for (const char* job : {"ps", "worker"}) {
    servers.push_back(&run(std::string("server ") + job,
                           Words{"server", std::string("--job_name=") + job, "--task_index=0"} +
                               cluster.host_flags() + secret_in("one")));
  }
  // First the command that waits for servers which have just started.
  Process& plus = run("plus", Words{"plus"} + cluster.host_flags() + secret_in("one"));
  EXPECT_TRUE(exits(plus, kExitDone));
  EXPECT_EQ(plus.standard_output(), "42\n");
  Process& outsider =
      run("stranger", Words{"plus", "--wait=0"} + cluster.host_flags() + secret_in("other"));
  EXPECT_TRUE(exits(outsider, kExitUsage));
  for (Process* server : servers) {
    server->send(SIGTERM);
    EXPECT_TRUE(exits(*server, kExitDone));
  }
}

// A run whose tasks have certificates. tests/net/task_certificates_test.cc tests with sockets what
// they protect; this test checks that a run with them gives the same result, and that no task can
// act as another.

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
