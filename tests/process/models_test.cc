// Convolutions, pooling, batch norm, dropout and augmentation in a run: the final weights depend on
// the configuration alone.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

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

// Batch norm in a run: its running values are state of the ps like the weights, and bit-identical,
// whichever task computes and whichever task is killed.

using net::Job;

// Includes everything that must not affect the running values: clipping, weight decay, a decaying
// rate.
const Words kRun = {"--batch_size=10",    "--train_steps=60",    "--optimizer=adamw",
                    "--weight_decay=0.1", "--clip_norm=0.5",     "--ema=0.9",
                    "--seed=3",           "--print_weights_hash"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10",
                       "--log_level=debug"};

class BatchNorm : public ProcessTest {
 protected:
  // The running values lie in the first page of the parameter vector and in the last.
  Words model_flags() const {
    const std::filesystem::path file = scratch() / "norm.toml";
    std::ofstream(file) << "[[layer]]\ntype = 'conv2d'\nchannels = 4\nkernel = 3\nstride = 2\n"
                           "[[layer]]\ntype = 'batch_norm'\n[[layer]]\ntype = 'relu'\n"
                           "[[layer]]\ntype = 'flatten'\n"
                           "[[layer]]\ntype = 'dense'\nunits = 20\n"
                           "[[layer]]\ntype = 'batch_norm'\nmomentum = 0.8\n"
                           "[[layer]]\ntype = 'relu'\n[[layer]]\ntype = 'dense'\nunits = 10\n";
    return {"--model=" + file.string()};
  }
  Process& launch(const Words& flags) {
    Process& job = run("launch", Words{"launch"} + model_flags() + flags + data_flags());
    EXPECT_TRUE(exits(job, kExitDone));
    return job;
  }
  std::string hash_of_launch(const Words& flags) { return weights_hash_in(launch(kRun + flags)); }
};

TEST_F(BatchNorm, IsBitIdenticalOnAnyNumberOfPsAndThreadsOverAnyTransport) {
  const std::string one = hash_of_launch({"--workers=3"});
  ASSERT_EQ(one.size(), 64U);
  for (const Words& other :
       {Words{"--workers=3", "--ps=2", "--threads=2"},
        Words{"--workers=3", "--ps=3", "--transport=tcp"},
        Words{"--workers=2", "--micro_batches=3", "--min_workers=1", "--ps=2"}}) {
    EXPECT_EQ(hash_of_launch(other), one) << other.back();
  }
}

TEST_F(BatchNorm, IsBitIdenticalWithVectorsOfAnotherLength) {
  if (__builtin_cpu_supports("avx512f") == 0) {
    GTEST_SKIP() << "this CPU lacks AVX-512";
  }
  EXPECT_EQ(hash_of_launch({"--workers=2", "--isa=avx2"}),
            hash_of_launch({"--workers=2", "--isa=avx512"}));
}

TEST_F(BatchNorm, IsBitIdenticalWhereWorkersAndPsAreLost) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  const Words flags = model_flags() + kRun + kSlowly;
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_TRUE(says(tasks.chief(), "global step: 15,"));
  tasks.trainers[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.trainers[1], SIGKILL));
  tasks.trainers[1] = &run_task(cluster, Job::kWorker, 1, flags);
  ASSERT_TRUE(says(tasks.chief(), "global step: 30,"));
  ASSERT_TRUE(says(tasks.chief(), kHasSnapshot));
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1);
  EXPECT_TRUE(says(tasks.chief(), "The run goes on from global step [1-9][0-9]*, generation 2"));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_EQ(weights_hash_in(tasks.chief()), hash_of_launch({"--workers=2"}));
}

TEST_F(BatchNorm, IsBitIdenticalWhereACopyTakesOver) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  const Words flags = model_flags() + kRun + kSlowly + Words{"--ps_replicas=2"};
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_NO_FATAL_FAILURE(lose_a_primary(cluster, flags, tasks));
  EXPECT_EQ(weights_hash_in(tasks.chief()), hash_of_launch({"--workers=2"}));
}

TEST_F(BatchNorm, GoesOnFromACheckpointOnAnotherNumberOfPs) {
  const Words saved = {"--workers=2", "--train_dir=" + (scratch() / "run").string()};
  Process& first = run(
      "first", Words{"launch", "--ps=1"} + model_flags() + kRun + saved + kSlowly + data_flags());
  ASSERT_TRUE(says(first, "global step: 25,"));
  first.send(SIGTERM);
  ASSERT_TRUE(exits(first, kExitTerminated));
  EXPECT_EQ(hash_of_launch(saved + Words{"--ps=3"}), hash_of_launch({"--workers=2"}));
}

// An evaluation depends on the running values. If they were clipped with the gradient, they would
// be close to 0.
TEST_F(BatchNorm, LearnsInEveryMode) {
  const Words longer = {"--workers=3", "--batch_size=50", "--train_steps=150",
                        "--learning_rate=0.01"};
  for (const char* mode : {"--sync_replicas=true", "--sync_replicas=false",
                           "--replicas_to_aggregate=2", "--wire_dtype=bf16", "--clip_norm=0.001"}) {
    EXPECT_GT(accuracy_in(launch(longer + Words{mode})), 0.85) << mode;
  }
}

TEST_F(BatchNorm, IsRefusedWhereItsStatisticsWouldBeLostOnTheWay) {
  for (const char* flag : {"--wire_dtype=int8", "--wire_dtype=int4", "--compress=topk:0.5"}) {
    Process& job =
        run("launch", Words{"launch", "--workers=2", flag} + model_flags() + data_flags());
    EXPECT_TRUE(exits(job, kExitUsage)) << flag;
    EXPECT_TRUE(says(job, "is not allowed with running statistics")) << flag;
  }
}

// --test_shifts: changes how images are scored, and nothing about training.

class TestShifts : public ProcessTest {
 protected:
  Process& launch(const Words& flags) {
    Process& job = run("launch", Words{"launch", "--workers=2", "--hidden_units=16",
                                       "--train_steps=20", "--print_weights_hash"} +
                                     flags + data_flags());
    EXPECT_TRUE(exits(job, kExitDone));
    return job;
  }
  static std::string validation_of(const Process& job) {
    return captured(job.standard_output(), "validation cross entropy = ([0-9.]+)\n");
  }
};

TEST_F(TestShifts, ChangeWhatIsFoundButNotTheWeights) {
  Process& as_it_is = launch({});
  Process& shifted = launch({"--test_shifts=1"});
  EXPECT_EQ(weights_hash_in(shifted), weights_hash_in(as_it_is));
  EXPECT_NE(validation_of(shifted), validation_of(as_it_is));
  Process& shared = launch({"--test_shifts=1", "--threads=2", "--ps=2"});
  EXPECT_EQ(validation_of(shared), validation_of(shifted));
}

TEST_F(TestShifts, AreRefusedForATable) {
  const std::string path = (scratch() / "t.csv").string();
  std::ofstream file(path);
  file << "x,y,class\n";
  for (int row = 0; row < 60; ++row) {
    file << row << "," << row % 7 << "," << (row % 2 == 0 ? "even" : "odd") << "\n";
  }
  file.close();
  Process& job = run("launch", {"launch", "--workers=2", "--test_shifts=1", "--data=" + path,
                                "--data_dir=" + (scratch() / "data").string()});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--test_shifts: 1 is not allowed for a table: only images can be shifted"));
}

}  // namespace
}  // namespace disttf::test_process
