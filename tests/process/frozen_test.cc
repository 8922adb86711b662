// All processes stop for longer than every timeout, and continue: a laptop's lid, a virtual machine
// that is migrated. Time spent suspended does not count toward timeouts, so the run continues as if
// nothing had happened.
#include <csignal>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kRun = {"--train_steps=100", "--print_weights_hash"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10"};
const Words kImpatient = {"--heartbeat_timeout=2", "--peer_timeout=1", "--worker_timeout=1"};
// For tests in which a task is killed and soon restarted.
const Words kPatient = {"--heartbeat_timeout=2", "--peer_timeout=4", "--worker_timeout=4"};
// Longer than the sum of the timeouts.
constexpr seconds kFrozen{7};

class Frozen : public ProcessTest {
 protected:
  // Checks that the time really passes: `witness`, one of the processes, does not end meanwhile.
  static void freeze(const std::vector<pid_t>& pids, Process& witness) {
    for (const int signal : {SIGSTOP, SIGCONT}) {
      for (const pid_t pid : pids) {
        ASSERT_EQ(::kill(pid, signal), 0);
      }
      if (signal == SIGSTOP) {
        ASSERT_TRUE(witness.wait(kFrozen).timed_out);
      }
    }
  }
  static void freeze(const std::vector<Process*>& processes) {
    std::vector<pid_t> pids;
    for (const Process* process : processes) {
      pids.push_back(process->pid());
    }
    freeze(pids, *processes.front());
  }

  void start(const Words& more) {
    flags_ = kRun + kSlowly + more;
    tasks_ = run_cluster(cluster_, flags_);
    for (Process* trainer : tasks_.trainers) {
      ASSERT_TRUE(says(*trainer, "training step 20 done"));
    }
  }
  // Returns all processes but one.
  [[nodiscard]] std::vector<Process*> others_than(const Process& away) const {
    std::vector<Process*> others = tasks_.all();
    std::erase(others, &away);
    return others;
  }
  // Kills a task, waits until its peers notice, freezes all others, and restarts the task.
  void expect_patience_for(Process*& away, Job job, std::size_t index,
                           const std::vector<Process*>& peers) {
    away->send(SIGKILL);
    ASSERT_TRUE(killed(*away, SIGKILL));
    const std::string name = std::string(net::job_name(job)) + " " + std::to_string(index);
    for (Process* peer : peers) {
      ASSERT_TRUE(says(*peer, name + " .* was lost"));
    }
    freeze(others_than(*away));
    away = &run_task(cluster_, job, index, flags_);
    expect_undisturbed();
  }
  void expect_undisturbed() {
    EXPECT_TRUE(all_exit(tasks_.all(), kExitDone));
    expect_weights_of_launch(tasks_.trainers, Words{"--workers=3", "--ps=2"} + kRun);
  }

  const ClusterOnLoopback cluster_{{.ps = 2, .workers = 3}};
  Words flags_;
  Tasks tasks_;
};

TEST_F(Frozen, RunGoesOn) {
  start(kImpatient);
  freeze(tasks_.all());
  expect_undisturbed();
}

TEST_F(Frozen, RunThatWakesUpTrainersFirstGoesOn) {
  start(kImpatient);
  freeze({tasks_.trainers[2], tasks_.trainers[1], tasks_.trainers[0], tasks_.ps[1], tasks_.ps[0]});
  expect_undisturbed();
}

TEST_F(Frozen, RunWithReplicasGoesOn) {
  start(kImpatient + Words{"--ps_replicas=2"});
  for (const char* range : {"0", "1"}) {
    ASSERT_TRUE(says(tasks_.chief(), std::string("range ") + range + ": view .* with a backup"));
  }
  freeze(tasks_.all());
  expect_undisturbed();
}

TEST_F(Frozen, RunWithoutOneOfItsPsWaitsAsLongForIt) {
  start(kPatient);
  expect_patience_for(tasks_.ps[1], Job::kPs, 1, tasks_.trainers);
}

TEST_F(Frozen, RunWithoutOneOfItsWorkersWaitsAsLongForIt) {
  start(kPatient);
  expect_patience_for(tasks_.trainers[2], Job::kWorker, 2, tasks_.ps);
}

// A server's task is its child.
TEST_F(Frozen, DriverAndItsServersGoOn) {
  std::vector<Process*> servers;
  for (const auto& [job, count] : {std::pair(Job::kPs, 2U), std::pair(Job::kWorker, 3U)}) {
    for (std::size_t index = 0; index < count; ++index) {
      const std::string name(net::job_name(job));
      servers.push_back(
          &run("server " + name + " " + std::to_string(index),
               Words{"server", "--job_name=" + name, "--task_index=" + std::to_string(index),
                     "--heartbeat_timeout=2", data_dir_flag()} +
                   cluster_.host_flags()));
    }
  }
  Process& driver = run("driver", Words{"train", "--existing_servers"} + cluster_.host_flags() +
                                      data_flags() + kRun + kSlowly + kImpatient);
  ASSERT_TRUE(says(driver, "training step 20 done"));
  std::vector<pid_t> pids = {driver.pid()};
  for (const Process* server : servers) {
    const std::vector<pid_t> children = children_of(server->pid());
    pids.insert(pids.end(), children.begin(), children.end());
    pids.push_back(server->pid());
  }
  freeze(pids, driver);
  EXPECT_TRUE(exits(driver, kExitDone));
  EXPECT_EQ(count_of(driver.standard_error(), "starting it again"), 0U);
  for (Process* server : servers) {
    EXPECT_TRUE(says_times(*server, 2, "Waiting for requests"));
    EXPECT_EQ(count_of(server->standard_error(), "driver was lost"), 0U);
  }
  expect_weights_of_launch({&driver}, Words{"--workers=3", "--ps=2", "--chief"} + kRun);
}

}  // namespace
}  // namespace disttf::test_process
