// Batch jobs under a real Slurm: tasks find their role in the step's variables, train across nodes
// with their own addresses, and end with the weights of `launch`.
#include "tests/process/slurm.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <regex>
#include <thread>

#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;

constexpr int kTasks = 4;  // a ps, the chief, two workers: ranks 0 to 3
const Words kRun = {"--train_steps=150", "--print_weights_hash"};
// Slow enough that the test can disturb the run before it ends.
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10"};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SlurmTest : public ProcessTest {
 protected:
  void SetUp() override {
    std::string why;
    slurm_ = Slurm::create(scratch(), why);
    if (!slurm_) {
      test_support::skip_without_engine(why);
    }
  }
  void TearDown() override {
    if (HasFailure() && slurm_) {
      std::cerr << slurm_->report() << "\n--- job output\n" << output();
    }
  }

  [[nodiscard]] std::string output() const { return text_of(output_path_); }

  // Writes a script for a job of four tasks on three nodes.
  [[nodiscard]] std::filesystem::path script(const Words& more,
                                             const Words& data = data_flags()) const {
    const std::filesystem::path path = scratch() / "job.sh";
    std::ofstream file(path);
    file << "#!/bin/bash\n#SBATCH --job-name=mnist\n#SBATCH --nodes=3\n#SBATCH --ntasks=" << kTasks
         << "\n#SBATCH --no-requeue\n#SBATCH --output=" << output_path_.string()
         << "\nsrun --kill-on-bad-exit=1 --wait=0 --distribution=block " << disttf_binary()
         << " train --ps=1 --chief --insecure";
    for (const std::string& word : data + more) {
      file << ' ' << word;
    }
    file << '\n';
    return path;
  }

  // The same script, rendered by disttf. Its output is in mnist-JOB.out.
  std::filesystem::path rendered_script(const Words& more) {
    const std::filesystem::path path = scratch() / "rendered.sh";
    Process& render =
        run("render", Words{"render", "slurm", "--workers=2", "--chief", "--placement=nodes=3",
                            "--program=" + disttf_binary(), "--output=" + path.string()} +
                          data_flags() + more);
    EXPECT_TRUE(exits(render, kExitDone));
    return path;
  }

  // Waits until the job has printed a line that matches the regular expression.
  ::testing::AssertionResult job_says(const std::string& pattern) const {
    const std::regex regex(pattern);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!std::regex_search(output(), regex)) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return ::testing::AssertionFailure() << "the job did not print " << pattern;
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
    return ::testing::AssertionSuccess();
  }

  // Returns the job's tasks by rank, with this machine's process ids.
  [[nodiscard]] std::map<int, pid_t> tasks() const {
    const std::string config = "SLURM_CONF=" + (scratch() / "slurm.conf").string();
    std::map<int, pid_t> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      const Words words = pid > 0 ? command_line_of(pid) : Words();
      if (words.empty() || words.front() != disttf_binary()) {
        continue;
      }
      const std::string variables = text_of(entry.path() / "environ");
      const std::string rank = "SLURM_PROCID=";
      const std::size_t at = variables.find(rank);
      if (variables.find(config) != std::string::npos && at != std::string::npos) {
        found[std::atoi(variables.c_str() + at + rank.size())] = pid;
      }
    }
    return found;
  }

  // Starts a job and waits until it trains.
  std::string start_training(const Words& more = {}) {
    const std::string job = slurm_->submit(script(kRun + kSlowly + more));
    EXPECT_TRUE(job_says("Chief: training step 30 done"));
    for (const auto& [rank, pid] : tasks()) {
      tasks_.push_back(pid);
    }
    EXPECT_EQ(tasks_.size(), std::size_t{kTasks});
    return job;
  }

  void expect_weights_of_launch_in_output() {
    Process& undisturbed =
        run("undisturbed", Words{"launch", "--workers=2", "--chief"} + kRun + data_flags());
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    // The output of the chief and of both workers.
    EXPECT_EQ(count_of(output(), "Weights SHA-256: " + weights_hash_in(undisturbed) + "\n"), 3U);
  }

  std::filesystem::path output_path_ = scratch() / "job.out";
  std::unique_ptr<Slurm> slurm_;
  std::vector<pid_t> tasks_;
};

TEST_F(SlurmTest, JobTrainsAcrossNodesAndIsCompleted) {
  const std::string job = slurm_->submit(script(kRun));
  EXPECT_EQ(slurm_->wait_for_end(job), "COMPLETED");
  // srun's exit code, and the script's, is the highest of all tasks.
  EXPECT_THAT(slurm_->show(job), HasSubstr(" ExitCode=0:0 "));
  EXPECT_EQ(count_of(output(), data_name() + " accuracy: 0."), 3U);
  expect_weights_of_launch_in_output();
}

TEST_F(SlurmTest, JobTrainsAUsersProgramOneOfWhichIsKilled) {
  const Words flags = {"--train_steps=60", "--print_weights_hash", "--program"};
  const Words program = {"--", "/usr/bin/python3",
                         (source_directory() / "tests/support/program_client.py").string()};
  const Words kills = {"kill=20", "once=" + (scratch() / "killed").string()};
  const std::string job = slurm_->submit(script(flags + program + kills, {}));
  EXPECT_EQ(slurm_->wait_for_end(job), "COMPLETED");
  EXPECT_THAT(output(), HasSubstr("the program was killed by signal 9"));
  Process& undisturbed =
      run("undisturbed", Words{"launch", "--workers=2", "--chief"} + flags + program);
  ASSERT_TRUE(exits(undisturbed, kExitDone));
  EXPECT_EQ(count_of(output(), "Weights SHA-256: " + weights_hash_in(undisturbed) + "\n"), 3U);
}

TEST_F(SlurmTest, RenderedScriptTrainsAcrossNodesAndIsCompleted) {
  const std::string job = slurm_->submit(rendered_script(kRun + Words{"--insecure"}));
  output_path_ = scratch() / ("mnist-" + job + ".out");
  EXPECT_EQ(slurm_->wait_for_end(job), "COMPLETED");
  EXPECT_THAT(slurm_->show(job), HasSubstr(" ExitCode=0:0 "));
  EXPECT_THAT(slurm_->show(job), HasSubstr(" NumNodes=3 "));
  EXPECT_EQ(count_of(output(), data_name() + " accuracy: 0."), 3U);
  expect_weights_of_launch_in_output();
}

TEST_F(SlurmTest, RenderedScriptHandsOnASecretThatNoOtherUserMayRead) {
  const std::filesystem::path secret = write_secret(scratch());
  std::filesystem::permissions(secret, std::filesystem::perms(0644));
  const std::filesystem::path script = rendered_script(kRun + Words{"--secret=" + secret.string()});
  std::string job = slurm_->submit(script);
  EXPECT_EQ(slurm_->wait_for_end(job), "FAILED");
  EXPECT_THAT(slurm_->show(job), HasSubstr(" ExitCode=2:0 "));
  std::filesystem::permissions(secret, std::filesystem::perms(0600));
  job = slurm_->submit(script);
  output_path_ = scratch() / ("mnist-" + job + ".out");
  EXPECT_EQ(slurm_->wait_for_end(job), "COMPLETED");
  expect_weights_of_launch_in_output();
}

TEST_F(SlurmTest, WorkerKilledEndsTheStepAndTheJobSubmittedAgainGoesOn) {
  const Words directory = {"--train_dir=" + (scratch() / "train").string()};
  const std::string job = start_training(directory);
  EXPECT_TRUE(job_says("Saved checkpoint at global step [1-9]"));
  kill(tasks().at(3), SIGKILL);
  EXPECT_EQ(slurm_->wait_for_end(job), "FAILED");
  EXPECT_TRUE(wait_until_gone(tasks_));
  const std::string again = slurm_->submit(script(kRun + directory));
  EXPECT_EQ(slurm_->wait_for_end(again), "COMPLETED");
  EXPECT_THAT(output(), ::testing::ContainsRegex("Training begins at global step [1-9]"));
  expect_weights_of_launch_in_output();
}

TEST_F(SlurmTest, ScancelTellsEveryTask) {
  const std::string job = start_training();
  slurm_->cancel(job);
  EXPECT_EQ(slurm_->wait_for_end(job), "CANCELLED");
  EXPECT_TRUE(wait_until_gone(tasks_));
  EXPECT_THAT(output(), HasSubstr("stopped by SIGTERM before the run finished"));
}

TEST_F(SlurmTest, NodeThatFailsEndsTheJobEverywhere) {
  const std::string job = start_training();
  slurm_->kill_node("n3");
  EXPECT_EQ(slurm_->wait_for_end(job, 2 * kPatience), "NODE_FAIL");
  EXPECT_TRUE(wait_until_gone(tasks_));
}

}  // namespace
}  // namespace disttf::test_process
