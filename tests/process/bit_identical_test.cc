// The final weights depend on the configuration alone: not on the number of ps, the order of
// arrival, delays, or the way in which tasks are started. Three trainers, because two hide errors
// of order.
#include <algorithm>
#include <string>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

const Words kRun = {"--train_steps=100", "--print_weights_hash"};

class BitIdentical : public ProcessTest {
 protected:
  std::string hash_of_launch(const Words& arguments) {
    Process& job = run("launch", Words{"launch"} + arguments + kRun + data_flags());
    EXPECT_TRUE(exits(job, kExitDone));
    return weights_hash_in(job);
  }
  std::string undisturbed() { return hash_of_launch({"--workers=3"}); }
};

TEST_F(BitIdentical, WhateverTheNumberOfPs) {
  const std::string one = undisturbed();
  ASSERT_EQ(one.size(), 64U);
  for (const char* ps : {"--ps=2", "--ps=3", "--ps=5"}) {
    EXPECT_EQ(hash_of_launch({"--workers=3", ps}), one) << ps;
  }
}

TEST_F(BitIdentical, WithRandomDelaysBeforeEachPush) {
  EXPECT_EQ(hash_of_launch({"--workers=3", "--ps=2", "--debug_delay_ms=10"}), undisturbed());
}

TEST_F(BitIdentical, WithASeparateChief) {
  EXPECT_EQ(hash_of_launch({"--workers=2", "--ps=2", "--chief"}), undisturbed());
}

TEST_F(BitIdentical, WhateverIsLogged) {
  EXPECT_EQ(hash_of_launch({"--workers=3", "--log_level=debug", "--log_format=json"}),
            undisturbed());
}

TEST_F(BitIdentical, WithVectorsOfAnotherLength) {
  if (__builtin_cpu_supports("avx512f") == 0) {
    GTEST_SKIP() << "this CPU lacks AVX-512";
  }
  EXPECT_EQ(hash_of_launch({"--workers=3", "--isa=avx2"}),
            hash_of_launch({"--workers=3", "--isa=avx512"}));
}

// Large enough that a ps also uses several threads for an update.
TEST_F(BitIdentical, WithAnyNumberOfThreads) {
  const Words wide = {"--workers=2", "--ps=1", "--hidden_units=300,40", "--batch_size=33"};
  const std::string one = hash_of_launch(wide + Words{"--threads=1"});
  ASSERT_EQ(one.size(), 64U);
  for (const char* threads : {"--threads=0", "--threads=2", "--threads=5"}) {
    EXPECT_EQ(hash_of_launch(wide + Words{threads}), one) << threads;
  }
}

// Weights decay in the ranges of all ps, and biases in none; the rate rises and falls; gradients
// are clipped by the norm over all ranges; the result is an average.
TEST_F(BitIdentical, WithAllThatPeopleTuneWhateverTheNumberOfPs) {
  const Words tuned = {"--workers=3",           "--optimizer=adamw",
                       "--weight_decay=0.05",   "--learning_rate_decay=one_cycle",
                       "--warmup_steps=10",     "--clip_norm=0.5",
                       "--hidden_units=100,50", "--ema=0.9",
                       "--label_smoothing=0.1"};
  const std::string one = hash_of_launch(tuned);
  ASSERT_EQ(one.size(), 64U);
  for (const char* other : {"--ps=2", "--ps=3", "--transport=tcp", "--threads=2"}) {
    EXPECT_EQ(hash_of_launch(tuned + Words{other}), one) << other;
  }
  for (const std::string other :
       {"--weight_decay=0", "--learning_rate_decay=cosine", "--warmup_steps=0", "--clip_norm=0",
        "--ema=0", "--label_smoothing=0"}) {
    Words flags = tuned;
    const std::string name = other.substr(0, other.find('=') + 1);
    std::ranges::replace_if(
        flags, [&](const std::string& flag) { return flag.starts_with(name); }, other);
    EXPECT_NE(hash_of_launch(flags), one) << other << " has no effect";
  }
}

// The random numbers of each step, for dropout and for augmentation, do not depend on the trainer
// that computes it.
TEST_F(BitIdentical, WithRandomlyChangedImagesWhicheverTrainerComputes) {
  const Words changed = {"--model=cnn",         "--train_steps=6",       "--batch_size=8",
                         "--augment_shift=0.1", "--augment_rotate=15",   "--augment_scale=0.1",
                         "--augment_shear=0.1", "--augment_elastic=0.2", "--augment_cutout=0.2",
                         "--augment_flip",      "--print_weights_hash",  "--micro_batches=3"};
  const auto hash_with = [&](const Words& others) {
    Process& job = run("launch", Words{"launch"} + changed + others + few_images());
    EXPECT_TRUE(exits(job, kExitDone));
    return weights_hash_in(job);
  };
  const std::string one = hash_with({"--workers=3"});
  ASSERT_EQ(one.size(), 64U);
  EXPECT_EQ(hash_with({"--workers=1", "--ps=3"}), one);
  EXPECT_EQ(hash_with({"--workers=2", "--ps=2", "--transport=tcp", "--threads=2"}), one);
  EXPECT_NE(hash_with({"--workers=3", "--seed=2"}), one);
}

// Large enough that over tcp a gradient is pushed while it is computed, unless its norm is needed
// first.
TEST_F(BitIdentical, WithClippedGradientsWhateverTheTransport) {
  const Words clipped = {"--workers=2", "--hidden_units=400", "--batch_size=20", "--clip_norm=0.5"};
  const std::string one = hash_of_launch(clipped + Words{"--transport=shm"});
  ASSERT_EQ(one.size(), 64U);
  EXPECT_EQ(hash_of_launch(clipped + Words{"--transport=tcp"}), one);
}

// The converse: the hash does depend on the configuration.
TEST_F(BitIdentical, ButOthersWithAnotherSeed) {
  EXPECT_NE(hash_of_launch({"--workers=3", "--seed=2"}), undisturbed());
}

TEST_F(BitIdentical, WithWorkersStartedByHandBeforeThePs) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 3});
  std::vector<Process*> tasks;
  for (const std::size_t worker : {2U, 1U, 0U}) {
    tasks.push_back(&run_task(cluster, net::Job::kWorker, worker, kRun));
    ASSERT_TRUE(says(*tasks.back(), "Started server with target"));
  }
  tasks.push_back(&run_task(cluster, net::Job::kPs, 1, kRun));
  ASSERT_TRUE(says(*tasks.back(), "worker [0-2] .* joined"));
  tasks.push_back(&run_task(cluster, net::Job::kPs, 0, kRun));
  EXPECT_TRUE(all_exit(tasks, kExitDone));
  EXPECT_EQ(weights_hash_in(*tasks[2]), undisturbed());
}

TEST_F(BitIdentical, WithTheChiefStartedLast) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2, .chief = true});
  std::vector<Process*> tasks;
  tasks.push_back(&run_task(cluster, net::Job::kPs, 0, kRun));
  tasks.push_back(&run_task(cluster, net::Job::kPs, 1, kRun));
  tasks.push_back(&run_task(cluster, net::Job::kWorker, 1, kRun));
  tasks.push_back(&run_task(cluster, net::Job::kWorker, 0, kRun));
  ASSERT_TRUE(says(*tasks[0], "worker 0 .* joined"));
  ASSERT_TRUE(says(*tasks[0], "worker 1 .* joined"));
  tasks.push_back(&run_task(cluster, net::Job::kChief, 0, kRun));
  EXPECT_TRUE(all_exit(tasks, kExitDone));
  EXPECT_EQ(weights_hash_in(*tasks.back()), undisturbed());
}

}  // namespace
}  // namespace disttf::test_process
