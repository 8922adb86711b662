// How tasks exit normally or on request: exit codes and messages.
#include <asio/io_context.hpp>
#include <csignal>
#include <ostream>
#include <thread>

#include "net/tcp/listener.h"
#include "net/tcp/sockets.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

class Ends : public ProcessTest {};

TEST_F(Ends, EveryTaskSoonAfterTheResult) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2, .chief = true});
  const Tasks tasks = run_cluster(cluster, {"--train_steps=50"});
  ASSERT_TRUE(says(tasks.chief(), data_name() + " accuracy: "));
  EXPECT_TRUE(all_exit_in(tasks.all(), kExitDone, kSoon));
}

TEST_F(Ends, EveryTaskOfAnAsynchronousRun) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 3});
  const Tasks tasks = run_cluster(cluster, {"--train_steps=200", "--sync_replicas=false"});
  ASSERT_TRUE(says(tasks.chief(), data_name() + " accuracy: "));
  EXPECT_TRUE(all_exit_in(tasks.all(), kExitDone, kSoon));
}

TEST_F(Ends, EveryTaskOfARunWithBackupWorkers) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 3});
  const Tasks tasks = run_cluster(cluster, {"--train_steps=100", "--replicas_to_aggregate=2"});
  ASSERT_TRUE(says(tasks.chief(), data_name() + " accuracy: "));
  EXPECT_TRUE(all_exit_in(tasks.all(), kExitDone, kSoon));
}

// Late pushes of other trainers are part of the result, so no trainer may print one before they
// arrive.
TEST_F(Ends, EveryTrainerWithTheRunsResultAlsoWhereGradientsComeLate) {
  for (const char* mode : {"--sync_replicas=false", "--replicas_to_aggregate=2"}) {
    const ClusterOnLoopback cluster({.ps = 2, .workers = 3});
    const Tasks tasks = run_cluster(
        cluster, {"--train_steps=200", "--print_weights_hash", "--debug_delay_ms=3", mode});
    ASSERT_TRUE(all_exit(tasks.all(), kExitDone));
    for (const Process* trainer : tasks.trainers) {
      EXPECT_EQ(weights_hash_in(*trainer), weights_hash_in(tasks.chief())) << mode;
    }
  }
}

// All steps are made, but a trainer with outstanding work delays the end.
TEST_F(Ends, AChiefThatIsStoppedWhileItWaitsForTheOthersSavesFirst) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1, .chief = true});
  const Words flags = {"--sync_replicas=false", "--train_steps=200", "--log_every=1",
                       "--debug_delay_ms=20",   "--save_secs=0",     "--save_steps=1000",
                       "--train_dir=saved"};
  const Tasks tasks = run_cluster(cluster, flags);
  // A chief waits for a worker that has joined, so it must not finish before the worker has joined.
  ASSERT_TRUE(says(tasks.chief(), "training step 1 done"));
  tasks.chief().send(SIGSTOP);
  ASSERT_TRUE(says(*tasks.trainers[1], "training step 3 done"));
  tasks.trainers[1]->send(SIGSTOP);
  tasks.chief().send(SIGCONT);
  ASSERT_TRUE(says(tasks.chief(), "Training elapsed time"));
  tasks.chief().send(SIGTERM);
  EXPECT_TRUE(exits(tasks.chief(), kExitTerminated));
  EXPECT_TRUE(says(tasks.chief(), "Saved checkpoint at global step 200"));
}

// A finished ps answers only for a moment, so the test plays it for as long as needed.
TEST_F(Ends, AWorkerThatJoinsAFinishedRunAtOnce) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  asio::io_context context;
  net::ListenerHooks hooks;
  hooks.make_welcome = [](const net::Hello&) {
    return net::Welcome{.incarnation = 1, .state = net::ShardState::kFinished};
  };
  hooks.on_connection = [](std::shared_ptr<net::ServerConnection>) -> asio::awaitable<void> {
    co_return;
  };
  const std::uint16_t port = cluster.tasks().ps.front().port;
  net::ListenerOptions options;
  options.self = {.job = Job::kPs, .index = 0};
  options.cluster = cluster.tasks();
  net::Listener listener(context, net::listen_on(context, port), options, hooks);
  std::thread thread([&] { context.run(); });
  Process& late = run_task(cluster, Job::kWorker, 1);
  EXPECT_TRUE(exits(late, kExitDone));
  EXPECT_TRUE(says(late, "the run has finished already"));
  context.stop();
  thread.join();
}

TEST_F(Ends, AWorkerThatComesWhenAllHaveLeft) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  EXPECT_TRUE(all_exit(run_cluster(cluster, {"--train_steps=5"}).all(), kExitDone));
  Process& late = run_task(cluster, Job::kWorker, 0, {"--start_timeout=1"});
  EXPECT_TRUE(exits(late, kExitLostPeers));
}

TEST_F(Ends, AWorkerWithoutPsNamingThemAll) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Process& worker = run_task(cluster, Job::kWorker, 1, {"--start_timeout=1"});
  EXPECT_TRUE(exits(worker, kExitLostPeers));
  EXPECT_TRUE(says(worker, "waited 1 s for ps 0 \\(" + cluster.address(Job::kPs, 0) +
                               "\\): Connection refused, ps 1 \\(" + cluster.address(Job::kPs, 1) +
                               "\\): Connection refused"));
}

TEST_F(Ends, APsWithoutTrainersNamingThemAll) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2, .chief = true});
  Process& ps = run_task(cluster, Job::kPs, 0, {"--start_timeout=1"});
  EXPECT_TRUE(exits(ps, kExitLostPeers));
  EXPECT_TRUE(says(ps, "waited 1 s for chief 0 \\(" + cluster.address(Job::kChief, 0) +
                           "\\), worker 0 \\(" + cluster.address(Job::kWorker, 0) +
                           "\\), worker 1 \\(" + cluster.address(Job::kWorker, 1) + "\\) to join"));
}

TEST_F(Ends, AllTasksWhenOneWorkerNeverComes) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 3});
  // Long enough that the other tasks have joined by then.
  const Words flags = {"--start_timeout=15", "--peer_timeout=1"};
  Process& ps = run_task(cluster, Job::kPs, 0, flags);
  Process& chief = run_task(cluster, Job::kWorker, 0, flags);
  Process& worker = run_task(cluster, Job::kWorker, 1, flags);
  EXPECT_TRUE(all_exit({&ps, &chief, &worker}, kExitLostPeers));
  for (Process* task : {&ps, &chief, &worker}) {
    EXPECT_TRUE(says(*task, "waited 15 s for worker 2 \\(.*\\) to join"));
  }
}

struct Signalled {
  const char* task;
  int signal;
  int exit_code;
};

void PrintTo(const Signalled& signalled, std::ostream* out) { *out << signalled.exit_code; }

class EndsBySignal : public ProcessTest, public ::testing::WithParamInterface<Signalled> {};

TEST_P(EndsBySignal, WithASentenceAndItsCodeAndTheOthersFollow) {
  const Signalled& param = GetParam();
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1, .chief = true});
  const Tasks tasks = run_cluster(cluster, endless() + impatient());
  ASSERT_TRUE(says(*tasks.trainers.back(), "training step 3 done"));
  for (Process* task : tasks.all()) {
    if (task->name() == param.task) {
      task->send(param.signal);
      EXPECT_TRUE(exits(*task, param.exit_code));
      EXPECT_TRUE(says(*task, std::string("stopped by ") +
                                  (param.signal == SIGINT ? "SIGINT" : "SIGTERM") +
                                  " before the run finished"));
    }
  }
  for (Process* task : tasks.all()) {
    if (task->name() != param.task) {
      EXPECT_TRUE(exits(*task, kExitLostPeers));
      EXPECT_TRUE(says(*task, param.task)) << "the message must name the lost task";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, EndsBySignal,
                         ::testing::Values(Signalled{"ps 0", SIGTERM, kExitTerminated},
                                           Signalled{"ps 0", SIGINT, kExitInterrupted},
                                           Signalled{"chief 0", SIGTERM, kExitTerminated},
                                           Signalled{"chief 0", SIGINT, kExitInterrupted},
                                           Signalled{"worker 0", SIGTERM, kExitTerminated},
                                           Signalled{"worker 0", SIGINT, kExitInterrupted}),
                         [](const auto& each) {
                           std::string name = each.param.task;
                           name.erase(name.find(' '), 1);
                           return name +
                                  (each.param.signal == SIGINT ? "Interrupted" : "Terminated");
                         });

// A task must react to a signal wherever it waits, not only between steps.
TEST_F(Ends, AWorkerThatWaitsForItsPsBySignal) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& worker = run_task(cluster, Job::kWorker, 0);
  ASSERT_TRUE(says(worker, "Started server"));
  worker.send(SIGTERM);
  EXPECT_TRUE(exits(worker, kExitTerminated));
}

TEST_F(Ends, APsThatWaitsForItsTrainersBySignal) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& ps = run_task(cluster, Job::kPs, 0);
  ASSERT_TRUE(says(ps, "Started server"));
  ps.send(SIGINT);
  EXPECT_TRUE(exits(ps, kExitInterrupted));
}

}  // namespace
}  // namespace disttf::test_process
