// A task with a limit of descriptors (ulimit -n), from the least with which a shell can start it to
// more than a small run needs: whatever cannot be opened, it ends on its own, with 0 or with a
// documented code and a sentence that names the limit.
#include <array>
#include <csignal>
#include <functional>
#include <optional>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

constexpr int kLeast = 3;  // the standard three
constexpr int kMost = 40;
// Short timeouts for tasks whose peer has ended. Nothing here is slow.
const Words kSmall = {"--model=softmax",   "--train_steps=3",   "--batch_size=10",
                      "--dataset=digits",  "--start_timeout=3", "--peer_timeout=2",
                      "--worker_timeout=2"};

class Descriptors : public ProcessTest {
 protected:
  // Runs disttf through a shell that has lowered the limit.
  Process& run_limited(int limit, const std::string& name, const Words& arguments,
                       const Variables& variables = {}) {
    const Words shell = {"-c", "ulimit -n \"$0\" && exec \"$@\"", std::to_string(limit),
                         disttf_binary()};
    return start({.program = "/bin/sh",
                  .arguments = shell + arguments,
                  .environment = variables,
                  .working_directory = scratch(),
                  .name = name + " with " + std::to_string(limit) + " descriptors"});
  }
  Process& run_unlimited(const std::string& name, const Words& arguments) {
    return start({.program = disttf_binary(),
                  .arguments = arguments,
                  .environment = {},
                  .working_directory = scratch(),
                  .name = name});
  }
  [[nodiscard]] Words server_words(const ClusterOnLoopback& cluster, Job job) const {
    return Words{"server", "--job_name=" + std::string(net::job_name(job)), "--task_index=0"} +
           cluster.host_flags() + data();
  }
  void run_servers(const ClusterOnLoopback& cluster) {
    for (const Job job : {Job::kPs, Job::kWorker}) {
      Process& server =
          run_unlimited("server of " + std::string(net::job_name(job)), server_words(cluster, job));
      ASSERT_TRUE(says(server, "Waiting for requests"));
    }
  }
  Process& run_limited_task(int limit, const ClusterOnLoopback& cluster, Job job,
                            std::size_t index) {
    return run_limited(limit, std::string(net::job_name(job)),
                       task_words(cluster, job, index) + kSmall);
  }
  Process& run_other_task(const ClusterOnLoopback& cluster, Job job, std::size_t index) {
    return run_unlimited(std::string(net::job_name(job)), task_words(cluster, job, index) + kSmall);
  }
  [[nodiscard]] Words task_words(const ClusterOnLoopback& cluster, Job job,
                                 std::size_t index) const {
    return Words{std::string(net::job_name(job)), "--task_index=" + std::to_string(index)} +
           cluster.host_flags() + data();
  }
  // Data of this test alone: extracted once.
  [[nodiscard]] Words data() const { return {"--data_dir=" + (scratch() / "data").string()}; }

  // Each limit has its own processes, none of which outlives it.
  void with_each_limit(const std::function<Process&(int limit)>& run) {
    std::filesystem::create_directories(scratch() / "data");
    for (int limit = kLeast; limit <= kMost; ++limit) {
      expect_end(run(limit));
      own_.clear();
      cluster_.reset();
    }
  }

  // Reserves its ports until the limit's processes have ended.
  const ClusterOnLoopback& make_cluster(const ClusterSize& size) { return cluster_.emplace(size); }

 private:
  Process& start(const ProcessOptions& options) { return own_.emplace_back(options); }

  static void expect_end(Process& process) {
    constexpr std::array kCodes = {kExitDone,    kExitError,        kExitUsage,
                                   kExitBadData, kExitCannotListen, kExitLostPeers};
    const Ending ending = process.wait();
    EXPECT_FALSE(ending.timed_out) << process.report();
    EXPECT_EQ(ending.signal, 0) << process.report();
    EXPECT_THAT(kCodes, ::testing::Contains(ending.exit_code)) << process.report();
    // If other tasks cannot connect, for lack of descriptors, the task times out.
    if (ending.exit_code == kExitLostPeers) {
      EXPECT_TRUE(says(process, "E .*(waited|gone for|cannot be reached: .*, for) .* s"))
          << process.report();
    } else if (ending.exit_code == kExitBadData) {
      EXPECT_TRUE(says(process, "E .*cannot download")) << process.report();
    } else if (ending.exit_code != kExitDone) {
      EXPECT_TRUE(says(process, " E ")) << process.report();
      EXPECT_TRUE(says(process, "\\(ulimit -n\\)")) << process.report();
    }
  }

  std::optional<ClusterOnLoopback> cluster_;
  std::deque<Process> own_;
};

TEST_F(Descriptors, AreTooFewForAPs) {
  with_each_limit([this](int limit) -> Process& {
    const ClusterOnLoopback& cluster = make_cluster({.ps = 2, .workers = 1});
    run_other_task(cluster, Job::kPs, 1);
    run_other_task(cluster, Job::kWorker, 0);
    return run_limited_task(limit, cluster, Job::kPs, 0);
  });
}

TEST_F(Descriptors, AreTooFewForAChief) {
  with_each_limit([this](int limit) -> Process& {
    const ClusterOnLoopback& cluster = make_cluster({.ps = 2, .workers = 1, .chief = true});
    run_other_task(cluster, Job::kPs, 0);
    run_other_task(cluster, Job::kPs, 1);
    run_other_task(cluster, Job::kWorker, 0);
    return run_limited_task(limit, cluster, Job::kChief, 0);
  });
}

TEST_F(Descriptors, AreTooFewForAWorker) {
  with_each_limit([this](int limit) -> Process& {
    const ClusterOnLoopback& cluster = make_cluster({.ps = 2, .workers = 2});
    run_other_task(cluster, Job::kPs, 0);
    run_other_task(cluster, Job::kPs, 1);
    run_other_task(cluster, Job::kWorker, 0);
    return run_limited_task(limit, cluster, Job::kWorker, 1);
  });
}

TEST_F(Descriptors, AreTooFewForALaunch) {
  with_each_limit([this](int limit) -> Process& {
    return run_limited(limit, "launch", Words{"launch", "--ps=1", "--workers=2"} + kSmall + data());
  });
}

// A server waits for requests until a signal ends it.
TEST_F(Descriptors, AreTooFewForAServer) {
  with_each_limit([this](int limit) -> Process& {
    const ClusterOnLoopback& cluster = make_cluster({.ps = 1, .workers = 1});
    Process& server = run_limited(limit, "server", server_words(cluster, Job::kPs));
    if (server.wait_for_line("Waiting for requests")) {
      server.send(SIGTERM);
    }
    return server;
  });
}

TEST_F(Descriptors, AreTooFewForADriver) {
  with_each_limit([this](int limit) -> Process& {
    const ClusterOnLoopback& cluster = make_cluster({.ps = 1, .workers = 1});
    run_servers(cluster);
    return run_limited(
        limit, "driver",
        Words{"train", "--existing_servers"} + cluster.host_flags() + kSmall + data());
  });
}

TEST_F(Descriptors, AreTooFewForPlus) {
  with_each_limit([this](int limit) -> Process& {
    const ClusterOnLoopback& cluster = make_cluster({.ps = 1, .workers = 1});
    run_servers(cluster);
    return run_limited(limit, "plus", Words{"plus", "--wait=3"} + cluster.host_flags());
  });
}

TEST_F(Descriptors, AreTooFewForAnEvaluator) {
  with_each_limit([this](int limit) -> Process& {
    const ClusterOnLoopback& cluster = make_cluster({.ps = 1, .workers = 1});
    return run_limited(limit, "evaluator", {"train", "--start_timeout=1"},
                       {{"TF_CONFIG", cluster.tf_config("evaluator", 0)}});
  });
}

// There is no server to download from: the command fails with that, or with the limit.
TEST_F(Descriptors, AreTooFewForADownload) {
  with_each_limit([this](int limit) -> Process& {
    return run_limited(
        limit, "download",
        Words{"train", "--download_only", "--data_url=http://127.0.0.1:1/"} + data());
  });
}

// A task with a memory limit (ulimit -v), from less than it needs to start its threads to more than
// a small run needs: it ends on its own, with 0 or with a documented code and a message.

// With less, the kernel may not be able to run the program at all.
constexpr std::size_t kLeastMib = 16;
constexpr std::size_t kMostMib = 160;
constexpr std::size_t kStepMib = 8;
const Words kSmallJob = {"--train_steps=3", "--start_timeout=3", "--peer_timeout=3",
                         "--worker_timeout=3"};

class LittleMemory : public ProcessTest, public ::testing::WithParamInterface<net::TaskId> {
 protected:
  // disttf, started by a shell that has lowered the limit. A crash leaves no core file.
  static ProcessOptions limited(std::size_t mib, const Words& arguments,
                                const std::filesystem::path& directory) {
    const Words shell = {"-c", "ulimit -c 0 && ulimit -v \"$0\" && exec \"$@\"",
                         std::to_string(mib * 1024), disttf_binary()};
    return {.program = "/bin/sh",
            .arguments = shell + arguments,
            .environment = {},
            .working_directory = directory,
            .name = "the task with " + std::to_string(mib) + " MiB"};
  }
  static ProcessOptions unlimited(const Words& arguments, const std::filesystem::path& directory) {
    return {.program = disttf_binary(),
            .arguments = arguments,
            .environment = {},
            .working_directory = directory,
            .name = "another task"};
  }
  static Words words(const ClusterOnLoopback& cluster, const net::TaskId& task) {
    const std::string job(net::job_name(task.job));
    return Words{job, "--task_index=" + std::to_string(task.index)} + cluster.host_flags() +
           data_flags() + kSmallJob;
  }
  static void expect_end(Process& process) {
    const Ending ending = process.wait();
    EXPECT_FALSE(ending.timed_out) << process.report();
    EXPECT_EQ(ending.signal, 0) << process.report();
    if (ending.exit_code == kExitLostPeers) {
      EXPECT_TRUE(says(process, " E .*(waited|gone for) .* s")) << process.report();
    } else if (ending.exit_code != kExitDone) {
      EXPECT_EQ(ending.exit_code, kExitError) << process.report();
      EXPECT_TRUE(says(process, " E .*memory")) << process.report();
    }
  }
};

TEST_P(LittleMemory, EndsWithASentence) {
  for (std::size_t mib = kLeastMib; mib <= kMostMib; mib += kStepMib) {
    const ClusterOnLoopback cluster({.ps = 1, .workers = 1, .chief = true});
    std::deque<Process> processes;
    for (const Job job : {Job::kPs, Job::kChief, Job::kWorker}) {
      if (job != GetParam().job) {
        processes.emplace_back(unlimited(words(cluster, {.job = job, .index = 0}), scratch()));
      }
    }
    expect_end(processes.emplace_back(limited(mib, words(cluster, GetParam()), scratch())));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, LittleMemory,
                         ::testing::Values(net::TaskId{.job = Job::kPs, .index = 0},
                                           net::TaskId{.job = Job::kChief, .index = 0},
                                           net::TaskId{.job = Job::kWorker, .index = 0}),
                         [](const auto& each) {
                           return std::string(net::job_name(each.param.job));
                         });

}  // namespace
}  // namespace disttf::test_process
