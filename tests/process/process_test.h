// The fixture of the process ring: the real binary, real sockets, real data, real signals.
//
// Every process that a test starts is kept until the test ends, and none outlives it; when an
// expectation has failed, all that they printed is shown. Training uses MNIST where the source
// tree has it beside itself (../shared/mnist), else the built-in digits, and says so.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/process/cluster_on_loopback.h"
#include "tests/process/paths.h"
#include "tests/process/process.h"

namespace disttf::test_process {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Exit codes as documented for users: written out, so that a change of roles/run/outcome.h is
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
  // Starts them all, the ps first.
  Tasks run_cluster(const ClusterOnLoopback& cluster, const Words& more = {});
  // Starts a ps, worker 0, which is the chief, and worker 1, which it returns, with other flags.
  Process& run_contradicting_worker(const Words& chief_flags, const Words& worker_flags);
  // Kills ps 1 and worker 1, and starts them again once they are gone.
  void kill_and_start_again(const ClusterOnLoopback& cluster, Tasks& tasks, const Words& ps_flags,
                            const Words& worker_flags);
  // Starts another program. `name`: how messages call it; without one, the file's.
  Process& run_program(const std::filesystem::path& program, const Words& arguments,
                       const std::string& name = {});

  // all_exit(), and how long it took from now on as a property of the test's result: `ms_to_end`.
  static ::testing::AssertionResult all_exit_in(const std::vector<Process*>& processes,
                                                int exit_code, milliseconds limit);

  // The trainers' final weights are those of an undisturbed `launch` with these flags.
  void expect_weights_of_launch(const std::vector<Process*>& trainers, const Words& flags);

  // --data and --data_dir of 600 images of 28 x 28 in ten classes, a sixth of them the test set:
  // scoring the 10 000 of data_flags() with convolutions costs more than all else that a test may
  // do.
  [[nodiscard]] Words few_images() const;

  // A directory of this test's own, also its processes' working directory. Removed at the end.
  [[nodiscard]] const std::filesystem::path& scratch() const { return scratch_; }

 private:
  std::filesystem::path scratch_;
  std::deque<Process> processes_;
};

// Less than --peer_timeout and --worker_timeout are by default: a task that ends only by one of
// these takes longer. A busy machine takes less.
inline constexpr seconds kSoon{50};

// --- the data ---

// Whether the real MNIST is there.
[[nodiscard]] bool has_mnist();
// The folder of the source tree that holds it.
[[nodiscard]] std::filesystem::path mnist_directory();
// --data_dir and --dataset for training. The directory lies in the build tree and is shared by all
// tests, so that the files are extracted once.
[[nodiscard]] Words data_flags();
// The first of the two.
[[nodiscard]] std::string data_dir_flag();
// The names of MNIST's four files, with .gz.
[[nodiscard]] std::vector<std::string> mnist_gz_names();
// "MNIST" or "Digits": what the result line begins with.
[[nodiscard]] std::string data_name();

// --- words ---

[[nodiscard]] Words operator+(Words left, const Words& right);

// What the chief logs, at level debug, when it can set ps that are lost to a step after step 0.
inline constexpr const char* kHasSnapshot = "Snapshot of global step [1-9][0-9]* is in memory";

// A run that lasts until something ends it, at a pace that leaves processors to others. Every step
// is logged, so that a test can wait for one.
[[nodiscard]] Words endless();
// Losses are noticed and given up within a few seconds. Heartbeats come every second: three of
// them may be late on a busy machine.
[[nodiscard]] Words impatient();

// --- expectations: their messages name the process ---

[[nodiscard]] ::testing::AssertionResult exits(Process& process, int exit_code,
                                               milliseconds limit = kPatience);
[[nodiscard]] ::testing::AssertionResult killed(Process& process, int signal,
                                                milliseconds limit = kPatience);
// The same for several; `limit` is for all of them together.
[[nodiscard]] ::testing::AssertionResult all_exit(const std::vector<Process*>& processes,
                                                  int exit_code, milliseconds limit = kPatience);
// A line that the regular expression is found in, now or within the limit.
[[nodiscard]] ::testing::AssertionResult says(Process& process, const std::string& pattern,
                                              milliseconds limit = kPatience);
// That many such lines.
[[nodiscard]] ::testing::AssertionResult says_times(Process& process, std::size_t count,
                                                    const std::string& pattern,
                                                    milliseconds limit = kPatience);

// The first capture of `pattern` in the text; empty and a failure when there is none.
[[nodiscard]] std::string captured(const std::string& text, const std::string& pattern);
// After "Weights SHA-256: ".
[[nodiscard]] std::string weights_hash_in(const Process& process);
[[nodiscard]] double accuracy_in(const Process& process);
// What a variable of the environment says: a whole number, else a failure of the test.
[[nodiscard]] unsigned number_from_variable(const char* variable, unsigned otherwise);
// How often `part` occurs.
[[nodiscard]] std::size_t count_of(const std::string& text, const std::string& part);

}  // namespace disttf::test_process
