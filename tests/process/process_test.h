// The fixture of process tests: the real binary, real sockets, real data, real signals.
//
// Every process that a test starts is kept until the test ends, and none outlives it. If an
// expectation has failed, all of their output is shown. Training uses MNIST if it lies beside the
// source tree (../shared/mnist), otherwise the built-in digits, and prints which.
#pragma once

#include <gmock/gmock.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/process/cluster_on_loopback.h"
#include "tests/process/process.h"

namespace disttf::test_process {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Exit codes as documented for users, written out so that a change of run/outcome.h is
// noticed.
inline constexpr int kExitDone = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadData = 3;
inline constexpr int kExitCannotListen = 4;
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitLostPeers = 138;
inline constexpr int kExitTerminated = 143;

// The processes of a cluster.
struct Tasks {
  std::vector<Process*> ps;
  std::vector<Process*> trainers;  // by rank: the chief first

  [[nodiscard]] Process& chief() const { return *trainers.front(); }
  [[nodiscard]] std::vector<Process*> all() const;
};

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest();
  ~ProcessTest() override;

  // Starts disttf.
  Process& run(const std::string& name, const Words& arguments, const Variables& environment = {});
  // Starts one task of the cluster with flags: the lists, the data and `more`.
  Process& run_task(const ClusterOnLoopback& cluster, net::Job job, std::size_t index,
                    const Words& more = {});
  // Starts all tasks, the ps first.
  Tasks run_cluster(const ClusterOnLoopback& cluster, const Words& more = {});
  // For a run with --ps_replicas=2 and `flags`: kills ps 1 after step 20, once its range has a
  // backup, starts it again, and waits until all tasks have exited with 0.
  void lose_a_primary(const ClusterOnLoopback& cluster, const Words& flags, Tasks& tasks);
  // Starts a ps, worker 0, which is the chief, and worker 1 with other flags; returns worker 1.
  Process& run_contradicting_worker(const Words& chief_flags, const Words& worker_flags);
  // Kills ps 1 and worker 1, and restarts them once they are gone.
  void kill_and_start_again(const ClusterOnLoopback& cluster, Tasks& tasks, const Words& ps_flags,
                            const Words& worker_flags);
  // Starts another program. `name`: its name in messages; empty: the file's.
  Process& run_program(const std::filesystem::path& program, const Words& arguments,
                       const std::string& name = {});

  // Like all_exit(); records the time from now on as a property of the test's result: `ms_to_end`.
  static ::testing::AssertionResult all_exit_in(const std::vector<Process*>& processes,
                                                int exit_code, milliseconds limit);

  // Expects the trainers' final weights to be those of an undisturbed `launch` with these flags.
  void expect_weights_of_launch(const std::vector<Process*>& trainers, const Words& flags);

  // --data and --data_dir of 600 images of 28 x 28 in ten classes, a sixth of them the test set:
  // scoring the 10 000 images of data_flags() with convolutions would take longer than the rest of
  // a test.
  [[nodiscard]] Words few_images() const;

  // A directory of this test, also its processes' working directory. Removed at the end.
  [[nodiscard]] const std::filesystem::path& scratch() const { return scratch_; }

 private:
  std::filesystem::path scratch_;
  std::deque<Process> processes_;
};

// Less than the defaults of --peer_timeout and --worker_timeout: a task that ends only by one of
// these takes longer. A busy machine takes less.
inline constexpr seconds kSoon{50};

// --- the data ---

// Returns whether the real MNIST is available.
[[nodiscard]] bool has_mnist();
// Returns the folder, beside the source tree, that contains it.
[[nodiscard]] std::filesystem::path mnist_directory();
// Returns --data_dir and --dataset for training. The directory lies in the build tree and is shared
// by all tests, so that the files are extracted once.
[[nodiscard]] Words data_flags();
// Returns the first of the two.
[[nodiscard]] std::string data_dir_flag();
// Returns the names of MNIST's four files, with .gz.
[[nodiscard]] std::vector<std::string> mnist_gz_names();
// Returns "MNIST" or "Digits": the beginning of the result line.
[[nodiscard]] std::string data_name();

// --- arguments ---

[[nodiscard]] Words operator+(Words left, const Words& right);

// The chief's debug log line that says it can roll back lost ps to a step after step 0.
inline constexpr const char* kHasSnapshot = "Snapshot of global step [1-9][0-9]* is in memory";

// A run that lasts until something ends it, at a pace that leaves processors to others. It logs
// every step, so that a test can wait for one.
[[nodiscard]] Words endless();
// Losses are detected and time out within a few seconds. Heartbeats come every second: three of
// them may be late on a busy machine.
[[nodiscard]] Words impatient();

// --- expectations: their messages name the process ---

[[nodiscard]] ::testing::AssertionResult exits(Process& process, int exit_code,
                                               milliseconds limit = kPatience);
[[nodiscard]] ::testing::AssertionResult killed(Process& process, int signal,
                                                milliseconds limit = kPatience);
// The same for several processes; `limit` is for all of them together.
[[nodiscard]] ::testing::AssertionResult all_exit(const std::vector<Process*>& processes,
                                                  int exit_code, milliseconds limit = kPatience);
// Waits for a line that matches the regular expression, within the limit.
[[nodiscard]] ::testing::AssertionResult says(Process& process, const std::string& pattern,
                                              milliseconds limit = kPatience);
// Waits for that many such lines.
[[nodiscard]] ::testing::AssertionResult says_times(Process& process, std::size_t count,
                                                    const std::string& pattern,
                                                    milliseconds limit = kPatience);

// Returns the first capture of `pattern` in the text; empty and a failure if there is none.
[[nodiscard]] std::string captured(const std::string& text, const std::string& pattern);
// Returns the text after "Weights SHA-256: ".
[[nodiscard]] std::string weights_hash_in(const Process& process);
[[nodiscard]] double accuracy_in(const Process& process);
// Returns the value of an environment variable, a whole number; fails the test on any other text.
[[nodiscard]] unsigned number_from_variable(const char* variable, unsigned otherwise);
// Returns the number of occurrences of `part`.
[[nodiscard]] std::size_t count_of(const std::string& text, const std::string& part);

// A secret for the tasks of a test on several machines.

// Writes mnist.secret, readable by its owner alone, and returns its path.
inline std::string write_secret(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "mnist.secret";
  std::ofstream(path) << std::string(32, 's') << "\n";
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  return path.string();
}

}  // namespace disttf::test_process
