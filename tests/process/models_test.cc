// Convolutions, pooling, batch norm, dropout and augmentation in a run: the final weights depend on
// the configuration alone.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/process/cluster_on_loopback.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

// A few small steps.
Words network() {
  return {"--config=" + (source_directory() / "tests/process/network.toml").string(),
          "--batch_size=10", "--train_steps=30", "--print_weights_hash"};
}

class Models : public ProcessTest {
 protected:
  std::string hash_of_launch(const Words& arguments) {
    Process& job = run("launch", Words{"launch"} + arguments + network() + few_images());
    EXPECT_TRUE(exits(job, kExitDone));
    return weights_hash_in(job);
  }
  // Three trainers on one ps: the reference for all other configurations.
  std::string undisturbed() {
    const std::string hash = hash_of_launch({"--workers=3"});
    EXPECT_EQ(hash.size(), 64U);
    return hash;
  }
};

TEST_F(Models, AreBitIdenticalOnAnyNumberOfPsAndThreadsOverAnyTransport) {
  const std::string one = undisturbed();
  for (const Words& other :
       {Words{"--workers=3", "--ps=2"}, Words{"--workers=3", "--ps=3", "--transport=tcp"},
        Words{"--workers=3", "--ps=5", "--threads=2"}}) {
    EXPECT_EQ(hash_of_launch(other), one) << other.back();
  }
}

TEST_F(Models, AreBitIdenticalWithVectorsOfAnotherLength) {
  if (__builtin_cpu_supports("avx512f") == 0) {
    GTEST_SKIP() << "this CPU lacks AVX-512";
  }
  EXPECT_EQ(hash_of_launch({"--workers=3", "--isa=avx2"}),
            hash_of_launch({"--workers=3", "--isa=avx512"}));
}

// Dropout's random numbers depend on the micro-batch, not on the trainer that computes it.
TEST_F(Models, AreBitIdenticalWhicheverTrainerComputesAMicroBatch) {
  EXPECT_EQ(hash_of_launch({"--workers=2", "--micro_batches=3", "--min_workers=1"}), undisturbed());
}

TEST_F(Models, AreBitIdenticalWhenTasksAreKilled) {
  Process& job = run("launch", Words{"launch", "--workers=3", "--ps=2", "--debug_delay_ms=20",
                                     "--save_steps=5", "--chaos=3,300"} +
                                   network() + few_images());
  EXPECT_TRUE(exits(job, kExitDone, seconds(150)));
  EXPECT_TRUE(says(job, "chaos: SIG"));
  EXPECT_EQ(weights_hash_in(job), undisturbed());
}

TEST_F(Models, AreBitIdenticalAfterGoingOnOnAnotherNumberOfPs) {
  const Words saved = {"--workers=3", "--train_dir=" + (scratch() / "run").string()};
  Process& first = run(
      "first", Words{"launch", "--ps=2", "--save_steps=5", "--log_every=1", "--debug_delay_ms=20"} +
                   saved + network() + few_images());
  ASSERT_TRUE(says(first, "global step: 12,"));
  first.send(SIGTERM);
  ASSERT_TRUE(exits(first, kExitTerminated));
  EXPECT_EQ(hash_of_launch(saved + Words{"--ps=5"}), undisturbed());
}

// Only the chief has the file; the other worker gets the layers from the ps.
TEST_F(Models, OfAFileAreTrainedByWorkersThatHaveNoFile) {
  const std::filesystem::path file = scratch() / "small.toml";
  std::ofstream(file) << "[[layer]]\ntype = 'conv2d'\nchannels = 4\nkernel = 3\nstride = 2\n"
                         "[[layer]]\ntype = 'relu'\n[[layer]]\ntype = 'flatten'\n"
                         "[[layer]]\ntype = 'dense'\nunits = 10\n";
  const Words flags = {"--model=" + file.string(), "--batch_size=10", "--train_steps=30",
                       "--print_weights_hash"};
  const ClusterOnLoopback cluster;
  const Words addresses = cluster.host_flags();
  run("ps", Words{"ps", "--task_index=0"} + addresses);
  Process& other = run("other", Words{"worker", "--task_index=1"} + addresses + data_flags());
  Process& chief =
      run("chief", Words{"worker", "--task_index=0"} + flags + addresses + data_flags());
  EXPECT_TRUE(exits(chief, kExitDone));
  EXPECT_TRUE(exits(other, kExitDone));
  Process& launch = run("launch", Words{"launch", "--workers=2"} + flags + data_flags());
  EXPECT_TRUE(exits(launch, kExitDone));
  EXPECT_EQ(weights_hash_in(chief), weights_hash_in(launch));
  EXPECT_EQ(weights_hash_in(chief).size(), 64U);
}

TEST_F(Models, WithNoSuchNameAreRefused) {
  Process& job = run("launch", Words{"launch", "--model=resnet"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--model: \"resnet\" is not softmax, mlp, lenet, cnn, or a model file"));
}

}  // namespace
}  // namespace disttf::test_process
