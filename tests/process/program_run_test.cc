// The rows that users' programs read while they are killed and workers come and go: in the order of
// steps and slots each epoch has every row once, and the weights are those of an undisturbed run.
//
//   DISTTF_ROWS_KILLS   how many programs are killed, default 6
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "data/posix_file_system.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "tests/process/process_test.h"
#include "tests/process/scripted_run.h"

namespace disttf::test_process {
namespace {

using net::Job;

constexpr std::size_t kRowsOfAnEpoch = 600;  // ROWS of program_client.py
constexpr std::size_t kSlots = 6;
// Of 120 rows each, so that five are an epoch.
const Words kBatches = {"--min_workers=1", "--micro_batches=" + std::to_string(kSlots),
                        "--batch_size=20"};
// The steps from one kill to the next. A program that is killed again and again without a step
// between is given up.
constexpr int kStepsOfAKill = 5;

// A line of program_client.py's rows=FILE.
struct Batch {
  pid_t process = 0;
  std::uint64_t step = 0;
  std::uint64_t slot = 0;
  std::vector<std::size_t> rows;
};

class ProgramRows : public ProcessTest {
 protected:
  void start_worker(std::size_t index) {
    const std::string client = (source_directory() / "tests/support/program_client.py").string();
    workers_[index] =
        &run("worker " + std::to_string(index),
             Words{"worker", "--task_index=" + std::to_string(index), "--program"} +
                 cluster_.host_flags() + kBatches +
                 Words{"--train_steps=" + std::to_string(steps()), "--print_weights_hash",
                       "--log_every=1", "--", "python3", client, rows_flag(), "slow=0.01"});
  }

  void end_worker(std::size_t index) {
    workers_[index]->send(SIGKILL);
    EXPECT_TRUE(killed(*workers_[index], SIGKILL));
    workers_.erase(index);
  }

  // Kills so many programs, one after the other, each once it has computed two batches.
  void kill_programs(unsigned kills) {
    for (unsigned each = 0; each < kills; ++each) {
      step_ += kStepsOfAKill;
      ASSERT_TRUE(says(*workers_[0], "global step: " + std::to_string(step_) + ","));
      std::map<pid_t, int> batches;
      pid_t newest = 0;
      for (const Batch& batch : read()) {
        const bool may_be_killed =
            ++batches[batch.process] > 1 && killed_.count(batch.process) == 0;
        newest = may_be_killed && ::kill(batch.process, 0) == 0 ? batch.process : newest;
      }
      if (newest != 0 && ::kill(newest, SIGKILL) == 0) {
        killed_.insert(newest);
      }
    }
  }

  // The newest step that the chief has logged.
  [[nodiscard]] int newest_step() const {
    const std::string log = workers_.at(0)->standard_error();
    const std::string name = "global step: ";
    return std::stoi(log.substr(log.rfind(name) + name.size()));
  }

  [[nodiscard]] std::vector<Batch> read() const {
    std::ifstream file(scratch() / "rows");
    std::vector<Batch> batches;
    for (std::string line; std::getline(file, line) && !file.eof();) {
      std::istringstream words(line);
      Batch batch;
      words >> batch.process >> batch.step >> batch.slot;
      for (std::size_t row = 0; words >> row;) {
        batch.rows.push_back(row);
      }
      batches.push_back(std::move(batch));
    }
    return batches;
  }

  // Expects all batches of all steps, and each epoch to be a permutation of the rows.
  void expect_each_row_once() const {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::size_t>> batches;
    std::size_t again = 0;
    for (const Batch& batch : read()) {
      const auto [at, is_new] = batches.try_emplace({batch.step, batch.slot}, batch.rows);
      EXPECT_EQ(at->second, batch.rows) << "step " << batch.step << ", slot " << batch.slot;
      again += is_new ? 0 : 1;
    }
    ASSERT_EQ(batches.size(), steps() * kSlots);
    std::vector<std::size_t> rows;
    for (const auto& [place, part] : batches) {
      rows.insert(rows.end(), part.begin(), part.end());
    }
    std::vector<std::size_t> all(kRowsOfAnEpoch);
    std::iota(all.begin(), all.end(), 0);
    for (auto epoch = rows.begin(); rows.end() - epoch >= std::ssize(all);
         epoch += std::ssize(all)) {
      std::sort(epoch, epoch + std::ssize(all));
      EXPECT_TRUE(std::equal(all.begin(), all.end(), epoch))
          << "epoch of row " << epoch - rows.begin();
    }
    std::cout << killed_.size() << " programs killed; " << batches.size() << " batches, " << again
              << " computed more than once\n";
  }

  [[nodiscard]] std::size_t steps() const { return 300 + kStepsOfAKill * kills_; }
  [[nodiscard]] std::string rows_flag() const { return "rows=" + (scratch() / "rows").string(); }

  const unsigned kills_ = number_from_variable("DISTTF_ROWS_KILLS", 6);
  const ClusterOnLoopback cluster_{{.ps = 2, .workers = 5}};
  std::map<std::size_t, Process*> workers_;
  std::set<pid_t> killed_;
  int step_ = 0;
};

TEST_F(ProgramRows, AreReadOnceEachThroughKillsByTwoThenFiveThenThreeWorkers) {
  Process& ps = run_task(cluster_, Job::kPs, 0);
  Process& other_ps = run_task(cluster_, Job::kPs, 1);
  for (const std::size_t index : {0U, 1U}) {
    start_worker(index);
  }
  kill_programs(kills_ / 3);
  for (const std::size_t index : {2U, 3U, 4U}) {
    start_worker(index);
  }
  for (const std::size_t index : {2U, 3U, 4U}) {
    ASSERT_TRUE(says(*workers_[index], "training step 3 done"));
  }
  step_ = newest_step();
  kill_programs(kills_ / 3);
  for (const std::size_t index : {3U, 4U}) {
    end_worker(index);
  }
  kill_programs(kills_ - 2 * (kills_ / 3));
  std::vector<Process*> left = {&ps, &other_ps};
  for (const auto& [index, worker] : workers_) {
    left.push_back(worker);
  }
  ASSERT_TRUE(all_exit(left, kExitDone));
  EXPECT_EQ(killed_.size(), kills_);
  expect_each_row_once();

  const std::string client = (source_directory() / "tests/support/program_client.py").string();
  Process& undisturbed =
      run("undisturbed", Words{"launch", "--program", "--workers=2", "--print_weights_hash",
                               "--train_steps=" + std::to_string(steps())} +
                             kBatches + Words{"--", "python3", client});
  ASSERT_TRUE(exits(undisturbed, kExitDone));
  EXPECT_EQ(weights_hash_in(*workers_[0]), weights_hash_in(undisturbed));
}

// A run whose model is a user's program, for the commands and tasks that compute models of layers:
// each says so in a sentence. The checkpoint and the chief are of the test.

// Its configuration is longer than any other frame that is no tensor.
roles::RunConfig program_run(std::size_t trainers) {
  roles::RunConfig config = softmax_run(trainers);
  config.dataset = "words-v1";
  for (std::size_t i = 0; i < 5000; ++i) {
    config.model.variables.push_back(
        {.name = "layers." + std::to_string(i) + ".weight", .shape = {2, 3}});
  }
  return config;
}

class ProgramModel : public ProcessTest {
 protected:
  // Saves the result of a run.
  void save() const {
    const roles::RunConfig config = program_run(1);
    const math::ParameterLayout layout = math::layout_of(config.model);
    data::PosixFileSystem disk;
    roles::CheckpointStore(disk, train_dir())
        .save(1, {.step = config.train_steps, .parameters = math::AlignedVector(layout.size())},
              layout, to_saved_json(config), 0);
  }
  [[nodiscard]] std::string train_dir() const { return (scratch() / "run").string(); }
};

TEST_F(ProgramModel, IsRefusedByCommandsThatComputeLayers) {
  save();
  struct Case {
    Words words;
    std::string sentence;
  };
  for (const auto& [words, sentence] : std::vector<Case>{
           {{"predict", train_dir(), "x.csv"},
            "the model is a user's program: predict computes only models of layers"},
           {{"serve", train_dir(), "--port=0"},
            "has the checkpoints of a user's program, and serve computes only models of layers"},
           {{"export", train_dir(), "--format=onnx"},
            "the model is a user's program: --format onnx computes only models of layers"},
           {{"export", train_dir(), "--format=saved_model"}, "--format saved_model computes only"},
           {Words{"evaluator", "--train_dir=" + train_dir()} + data_flags(),
            "the model is a user's program: the evaluator computes only models of layers"}}) {
    Process& process = run(words.front(), words);
    EXPECT_TRUE(exits(process, kExitUsage)) << words.back();
    EXPECT_TRUE(says(process, sentence));
  }
}

TEST_F(ProgramModel, IsShownAndExportedByItsVariables) {
  save();
  Process& shown = run("checkpoint", {"checkpoint", "show", train_dir()});
  EXPECT_TRUE(exits(shown, kExitDone));
  EXPECT_TRUE(says(shown, "model +program of 5000 variables"));
  EXPECT_TRUE(says(shown, "layers.4999.weight \\[2, 3\\]"));
  EXPECT_TRUE(exits(run("checkpoint", {"checkpoint", "verify", train_dir()}), kExitDone));
  for (const std::string format : {"safetensors", "npz", "disttf"}) {
    const std::string output = (scratch() / format).string();
    Process& exported =
        run("export", {"export", train_dir(), "--format=" + format, "--output=" + output});
    EXPECT_TRUE(exits(exported, kExitDone));
    EXPECT_TRUE(says(exported, "Exported program of 5000 variables of words-v1"));
  }
}

// Worker 0, the chief, is the test. The ps passes the configuration on over real sockets.
TEST_F(ProgramModel, IsRefusedByTasksThatHaveNoProgram) {
  const ClusterOnLoopback cluster{{.ps = 1, .workers = 2}};
  Process& ps = run_task(cluster, Job::kPs, 0);
  ASSERT_TRUE(says(ps, "Started server"));
  const roles::RunConfig config = program_run(2);
  ASSERT_GT(to_json(config).size(), net::kMaxControlBodyBytes);
  const RawPeer chief = welcomed(cluster);
  publish_and_restore(chief, config, 0, 1);
  Process& worker = run_task(cluster, Job::kWorker, 1);
  EXPECT_TRUE(exits(worker, kExitUsage));
  EXPECT_TRUE(says(worker, "--program: missing; the run trains a user's program"));
  Process& service =
      run("serve", Words{"serve", "--port=0", "--follow_secs=0"} + cluster.host_flags());
  EXPECT_TRUE(exits(service, kExitUsage));
  EXPECT_TRUE(says(
      service, "the run trains a user's program, and this command computes only models of layers"));
  ps.send(SIGKILL);
}

// The numbers between a run and a user's program: what WELCOME has, and how the log reports those
// that are not finite.

using ::testing::HasSubstr;

class ProgramNumbers : public ProcessTest {
 protected:
  Process& launch(const Words& client_words) {
    const std::string client = (source_directory() / "tests/support/program_client.py").string();
    return run("launch", Words{"launch", "--workers=1", "--train_steps=4", "--program_spare=false",
                               "--program", "--", "python3", "-B", client} +
                             client_words);
  }
};

TEST_F(ProgramNumbers, WelcomeHasTheShortestLearningRate) {
  ASSERT_TRUE(exits(launch({"welcome=welcome.json"}), kExitDone));
  std::ifstream file(scratch() / "welcome.json");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}),
              HasSubstr("\"learning_rate\":0.01,"));
}

TEST_F(ProgramNumbers, ALossThatIsNoNumberNamesTheGradientsFirstSuchVariable) {
  Process& job = launch({"nan=2:loss"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job,
                   "the loss became nan at step 2: training has diverged; .* may help; the "
                   "first non-finite gradient is that of variable 2 of 2, b, element 0: nan"));
}

TEST_F(ProgramNumbers, AGradientThatIsNoNumberNamesItsVariable) {
  Process& job = launch({"nan=2"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_TRUE(says(job,
                   "the gradient for step 2 has non-finite values, 1 of 32: .*; the first is "
                   "in b"));
}

}  // namespace
}  // namespace disttf::test_process
