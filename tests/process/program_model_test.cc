// A run whose model is a user's program, for the commands and tasks that compute models of layers:
// each says so in a sentence. The checkpoint and the chief are of the test.
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "data/posix_file_system.h"
#include "storage/checkpoint/core/checkpoint_store.h"
#include "tests/process/process_test.h"
#include "tests/process/scripted_run.h"

namespace disttf::test_process {
namespace {

using net::Job;

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

}  // namespace
}  // namespace disttf::test_process
