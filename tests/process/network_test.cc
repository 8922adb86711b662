// Real network faults between hosts that are network namespaces: pulled links, switches that drop
// frames, machines that come back elsewhere. If the network recovers, the run's result is
// bit-identical to an undisturbed one; otherwise, every task exits in bounded time.
#include "tests/process/network.h"

#include <csignal>
#include <filesystem>
#include <iterator>

#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using net::Job;

const Words kRun = {"--train_steps=150", "--print_weights_hash", "--heartbeat_timeout=3",
                    "--transport=tcp"};
// Slow enough that the test can disturb the run before it ends.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10"};
const Words kGivesUpSoon = {"--peer_timeout=2", "--worker_timeout=2"};
// The timeouts of `kGivesUpSoon` expire after a third of this.
constexpr seconds kGivenUp{30};

std::size_t threads_of(const Process& process) {
  const std::filesystem::directory_iterator threads("/proc/" + std::to_string(process.pid()) +
                                                    "/task");
  return static_cast<std::size_t>(std::distance(begin(threads), end(threads)));
}

class NetworkTest : public ProcessTest {
 protected:
  void SetUp() override {
    std::string why;
    network_ = Network::create({"ps0", "ps1", "spare", "chief", "worker0", "worker1"}, why);
    if (!network_) {
      test_support::skip_without_engine(why);
    }
  }

  static std::string host_of(Job job, std::size_t index) {
    return job == Job::kChief ? "chief" : std::string(net::job_name(job)) + std::to_string(index);
  }

  Process& start(Job job, std::size_t index, const Words& more, const std::string& host) {
    const std::string command(net::job_name(job));
    return run_program(network_->program(),
                       network_->words_on(host) +
                           Words{disttf_binary(), command, "--task_index=" + std::to_string(index),
                                 "--ps_hosts=ps0:2222,ps1:2222", "--chief_host=chief:2222",
                                 "--worker_hosts=worker0:2222,worker1:2222", secret_} +
                           data_flags() + more,
                       command + " " + std::to_string(index) + " on " + host);
  }
  Process& start(Job job, std::size_t index, const Words& more) {
    return start(job, index, more, host_of(job, index));
  }

  // Starts a task on each host but the spare one.
  Tasks start_all(const Words& more) {
    Tasks tasks;
    tasks.ps = {&start(Job::kPs, 0, more), &start(Job::kPs, 1, more)};
    tasks.trainers = {&start(Job::kChief, 0, more), &start(Job::kWorker, 0, more),
                      &start(Job::kWorker, 1, more)};
    return tasks;
  }
  // Starts all tasks and waits until they train.
  Tasks start_training(const Words& more) {
    Tasks tasks = start_all(kRun + kSlowly + more);
    for (Process* trainer : tasks.trainers) {
      EXPECT_TRUE(says(*trainer, "training step 20 done"));
    }
    return tasks;
  }

  void expect_undisturbed(const Tasks& tasks) {
    EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
    expect_weights_of_launch(tasks.trainers, Words{"--workers=2", "--chief"} + kRun);
  }
  static void expect_given_up(const std::vector<Process*>& tasks) {
    EXPECT_TRUE(all_exit(tasks, kExitLostPeers, kGivenUp));
    for (Process* task : tasks) {
      EXPECT_TRUE(says(*task, " E .* has been gone for 2 s"));
    }
  }

  std::unique_ptr<Network> network_;

 private:
  const std::string secret_ = "--secret_file=" + write_secret(scratch());
};

TEST_F(NetworkTest, TrainsAcrossHosts) { expect_undisturbed(start_all(kRun)); }

TEST_F(NetworkTest, CableOfAPsPulledAndPutBack) {
  const Tasks tasks = start_training({});
  network_->pull_cable("ps1");
  for (Process* trainer : tasks.trainers) {
    ASSERT_TRUE(says(*trainer, "ps 1 .* was lost"));
  }
  network_->plug_in("ps1");
  expect_undisturbed(tasks);
  EXPECT_THAT(tasks.ps[1]->standard_error(), ::testing::Not(::testing::HasSubstr("generation 2")));
}

TEST_F(NetworkTest, CableOfAWorkerPulledAndPutBack) {
  const Tasks tasks = start_training({});
  network_->pull_cable("worker1");
  for (Process* ps : tasks.ps) {
    ASSERT_TRUE(says(*ps, "worker 1 .* was lost"));
  }
  network_->plug_in("worker1");
  expect_undisturbed(tasks);
}

TEST_F(NetworkTest, CableOfTheChiefPulledAndPutBack) {
  const Tasks tasks = start_training({});
  network_->pull_cable("chief");
  for (Process* ps : tasks.ps) {
    ASSERT_TRUE(says(*ps, "chief 0 .* was lost"));
  }
  network_->plug_in("chief");
  expect_undisturbed(tasks);
}

TEST_F(NetworkTest, CableOfAPsPulledForGood) {
  const Tasks tasks = start_training(kGivesUpSoon);
  network_->pull_cable("ps1");
  expect_given_up(tasks.all());
}

TEST_F(NetworkTest, CableOfAWorkerPulledForGood) {
  const Tasks tasks = start_training(kGivesUpSoon);
  network_->pull_cable("worker1");
  expect_given_up(tasks.all());
}

// No reset, no end of file: the peer of a connection is gone without a notification.
TEST_F(NetworkTest, WorkerDiesBehindASwitchThatDrops) {
  Tasks tasks = start_training({});
  network_->drop_all("worker1");
  tasks.trainers[2]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.trainers[2], SIGKILL));
  for (Process* ps : tasks.ps) {
    ASSERT_TRUE(says(*ps, "worker 1 .* was lost"));
  }
  network_->drop_none("worker1");
  tasks.trainers[2] = &start(Job::kWorker, 1, kRun + kSlowly);
  expect_undisturbed(tasks);
}

TEST_F(NetworkTest, PsDiesBehindASwitchThatDrops) {
  Tasks tasks = start_training({});
  network_->drop_all("ps1");
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  for (Process* trainer : tasks.trainers) {
    ASSERT_TRUE(says(*trainer, "ps 1 .* was lost"));
  }
  network_->drop_none("ps1");
  tasks.ps[1] = &start(Job::kPs, 1, kRun + kSlowly);
  expect_undisturbed(tasks);
}

TEST_F(NetworkTest, WhatAWorkerSendsToAPsIsDropped) {
  const Tasks tasks = start_training(kGivesUpSoon);
  network_->drop_way("worker1", "ps0");
  expect_given_up(tasks.all());
}

TEST_F(NetworkTest, WhatAPsSendsToAWorkerIsDropped) {
  const Tasks tasks = start_training(kGivesUpSoon);
  network_->drop_way("ps0", "worker1");
  expect_given_up(tasks.all());
}

TEST_F(NetworkTest, PsComesBackAtAnotherAddressAndTheOldOneWakesUp) {
  Tasks tasks = start_training({});
  Process& old = *tasks.ps[1];
  old.send(SIGSTOP);
  for (Process* trainer : tasks.trainers) {
    ASSERT_TRUE(says(*trainer, "ps 1 .* was lost"));
  }
  network_->point("ps1", "spare");
  tasks.ps[1] = &start(Job::kPs, 1, kRun + kSlowly, "spare");
  ASSERT_TRUE(says(*tasks.ps[1], "holds parameters .*, generation 2"));
  expect_undisturbed(tasks);
  old.send(SIGCONT);
  EXPECT_TRUE(exits(old, kExitLostPeers));
  EXPECT_TRUE(says(old, "was replaced while it was silent: the run is in generation 2"));
}

// The chief can connect to both hosts of range 0, the worker only to the one that is not its
// primary.
TEST_F(NetworkTest, PsThatOneWorkerDoesNotReachIsReplacedByItsCopy) {
  const Tasks tasks =
      start_training({"--ps_replicas=2", "--peer_timeout=30", "--worker_timeout=30"});
  for (const char* range : {"0", "1"}) {
    ASSERT_TRUE(says(tasks.chief(), std::string("range ") + range + ": view .* with a backup"));
  }
  network_->drop_way("worker1", "ps0");
  EXPECT_TRUE(says(tasks.chief(), "range 0: view 3, ps 1 .* alone: a trainer cannot reach"));
  EXPECT_TRUE(says(tasks.chief(), "range 0: view 4, ps 1 .* with a backup"));
  expect_undisturbed(tasks);
}

// Neither host of a range can be reached by both workers, so the run must end.
TEST_F(NetworkTest, WorkersThatReachDifferentCopiesEndTheRun) {
  const Tasks tasks = start_training({"--ps_replicas=2", "--peer_timeout=8", "--worker_timeout=8"});
  for (const char* range : {"0", "1"}) {
    ASSERT_TRUE(says(tasks.chief(), std::string("range ") + range + ": view .* with a backup"));
  }
  network_->drop_way("worker0", "ps1");
  network_->drop_way("worker1", "ps0");
  EXPECT_TRUE(all_exit(tasks.all(), kExitLostPeers));
  EXPECT_LE(count_of(tasks.chief().standard_error(), "a trainer cannot reach"), 2U);
}

// A ps is lost, and its name cannot be resolved: each lookup takes seconds. The remaining ps, which
// tries to connect to it all the time, meanwhile serves all trainers, with few threads, and exits
// without waiting for a lookup.
TEST_F(NetworkTest, LookupsThatHangDelayNoTask) {
  const Tasks tasks = start_all(
      {"--train_steps=1000000000", "--log_every=100", "--ps_replicas=2", "--transport=tcp"});
  for (const char* range : {"0", "1"}) {
    ASSERT_TRUE(says(tasks.chief(), std::string("range ") + range + ": view .* with a backup"));
  }
  // A trainer that is not yet connected to the lost ps cannot find it again.
  for (Process* trainer : tasks.trainers) {
    ASSERT_TRUE(says(*trainer, "global step: "));
  }
  const std::size_t threads = threads_of(*tasks.ps[0]);
  network_->black_hole("ps1", "spare");
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  for (Process* trainer : tasks.trainers) {
    ASSERT_TRUE(says(*trainer, "ps 0 .* is back"));
  }
  // A thousand steps, which would take minutes if each waited for a part of a lookup.
  const std::size_t lines = count_of(tasks.chief().standard_error(), "global step: ");
  EXPECT_TRUE(says_times(tasks.chief(), lines + 10, "global step: "));
  EXPECT_LE(threads_of(*tasks.ps[0]),
            threads + 6);  // lookups of two ranges: both families, and each alone
  tasks.ps[0]->send(SIGINT);
  EXPECT_TRUE(exits(*tasks.ps[0], kExitInterrupted));
  EXPECT_TRUE(all_exit(tasks.trainers, kExitLostPeers));
}

}  // namespace
}  // namespace disttf::test_process
