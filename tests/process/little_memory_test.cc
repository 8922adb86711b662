// A task with a memory limit (ulimit -v), from less than it needs to start its threads to more than
// a small run needs: it ends on its own, with 0 or with a documented code and a message.
#include <algorithm>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using net::Job;

// With less, the kernel may not be able to run the program at all.
constexpr std::size_t kLeastMib = 16;
constexpr std::size_t kMostMib = 160;
constexpr std::size_t kStepMib = 8;
const Words kSmall = {"--train_steps=3", "--start_timeout=3", "--peer_timeout=3",
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
           data_flags() + kSmall;
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
