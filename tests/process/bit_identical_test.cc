// The final weights depend on the configuration alone: not on the number of ps, the order of
// arrival, delays, or the way in which tasks are started. Three trainers, because two hide errors
// of order.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <string>

#include "data/sampler.h"
#include "math/aligned.h"
#include "math/model.h"
#include "math/random.h"
#include "roles/ps/core/shard.h"
#include "run/process/stop_signal.h"
#include "storage/download/dataset_source.h"
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

// --ema: the averages are the result, and are bit-identical like the weights, whichever task is
// killed.

using net::Job;

const Words kAveraged = {"--train_steps=150", "--print_weights_hash", "--ema=0.95"};
const Words kSlowly = {"--debug_delay_ms=20", "--log_every=1", "--save_steps=10",
                       "--log_level=debug"};

class Averages : public ProcessTest {
 protected:
  std::string hash_of_launch(const Words& flags) {
    Process& job = run("launch", Words{"launch"} + flags + data_flags());
    EXPECT_TRUE(exits(job, kExitDone));
    return weights_hash_in(job);
  }
};

TEST_F(Averages, AreTheResultWhateverTheNumberOfPs) {
  const Words flags = Words{"--workers=3"} + kAveraged;
  const std::string one = hash_of_launch(flags);
  ASSERT_EQ(one.size(), 64U);
  for (const char* other : {"--ps=2", "--ps=3", "--transport=tcp", "--threads=2"}) {
    EXPECT_EQ(hash_of_launch(flags + Words{other}), one) << other;
  }
  EXPECT_NE(hash_of_launch({"--workers=3", "--train_steps=150", "--print_weights_hash"}), one);
}

TEST_F(Averages, AreThoseOfAnUndisturbedRunWhereAPsIsLost) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Tasks tasks = run_cluster(cluster, kAveraged + kSlowly);
  ASSERT_TRUE(says(tasks.chief(), kHasSnapshot));
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1);
  EXPECT_TRUE(says(tasks.chief(), "The run goes on from global step [1-9][0-9]*, generation 2"));
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  expect_weights_of_launch(tasks.trainers, Words{"--workers=2"} + kAveraged);
}

TEST_F(Averages, AreThoseOfAnUndisturbedRunWhereACopyTakesOver) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  const Words flags = kAveraged + kSlowly + Words{"--ps_replicas=2"};
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_NO_FATAL_FAILURE(lose_a_primary(cluster, flags, tasks));
  expect_weights_of_launch(tasks.trainers, Words{"--workers=2"} + kAveraged);
}

// The first run is stopped and saves; the next resumes with another number of ps; a third one finds
// the run finished.
TEST_F(Averages, GoOnFromACheckpoint) {
  const Words flags = Words{"--workers=2"} + kAveraged;
  const Words saved = flags + Words{"--train_dir=" + (scratch() / "run").string()};
  Process& first = run("first", Words{"launch", "--ps=1"} + saved + kSlowly + data_flags());
  ASSERT_TRUE(says(first, "global step: 25,"));
  first.send(SIGTERM);
  ASSERT_TRUE(exits(first, kExitTerminated));
  const std::string undisturbed = hash_of_launch(flags);
  EXPECT_EQ(hash_of_launch(saved + Words{"--ps=3"}), undisturbed);
  EXPECT_EQ(hash_of_launch(saved + Words{"--ps=2"}), undisturbed);
}

TEST_F(Averages, BeginWithTheWeightsOfACheckpointThatHasNone) {
  const Words saved = {"--workers=2", "--train_dir=" + (scratch() / "run").string(),
                       "--print_weights_hash"};
  const std::string last = hash_of_launch(saved + Words{"--train_steps=50"});
  EXPECT_EQ(hash_of_launch(saved + Words{"--train_steps=50", "--ema=0.95"}), last);
}

TEST_F(Averages, AreTheResultWhereNotEveryGradientCounts) {
  for (const char* mode : {"--replicas_to_aggregate=2", "--sync_replicas=false"}) {
    Process& job =
        run("launch", Words{"launch", "--workers=3", "--ps=2", mode} + kAveraged + data_flags());
    EXPECT_TRUE(exits(job, kExitDone)) << mode;
    EXPECT_GT(accuracy_in(job), 0.7) << mode;
  }
}

// One trainer with batch 100 and two with 50 give the same weights after 200 steps, except for
// rounding. Runs in this process, with the trainer's own parts (sampler, model, shard) and the real
// data, because the promise is about weights and a run only prints their hash.

constexpr std::uint64_t kSteps = 200;

math::ImageSet images_of(const data::Split& split) {
  return {.images = split.images, .labels = split.labels};
}

// Returns the run's parameters after kSteps, with its trainers taking turns.
math::AlignedVector train(const data::Dataset& dataset, const roles::RunConfig& config) {
  math::Model model(config.model, config.batch_size, config.isa);
  const std::size_t size = model.layout().size();
  data::Sampler sampler({.seed = config.seed,
                         .purpose = static_cast<std::uint32_t>(math::Purpose::kPermutation),
                         .rows = static_cast<std::uint32_t>(dataset.train.labels.size()),
                         .batch_size = config.batch_size,
                         .trainers = config.trainers,
                         .random_bits = &math::random_bits});
  roles::Shard shard(config, {.begin = 0, .end = size});
  model.initialize(config.seed, shard.begin_restore(/*parameters_only=*/true).front());
  shard.finish_restore(0);
  std::vector<std::uint32_t> rows(config.batch_size);
  math::AlignedVector parameters(size);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const auto now = shard.parameters();
    std::copy(now.begin(), now.end(), parameters.data());
    for (std::size_t trainer = 0; trainer < config.trainers; ++trainer) {
      sampler.batch(step, trainer, rows);
      const roles::PushId push{.trainer = trainer, .incarnation = 1, .step = step, .sequence = 0};
      const roles::Admission admission = shard.admit(push);
      model.gradient(parameters.span(), images_of(dataset.train), rows, admission.destination);
      shard.commit(push);
    }
  }
  math::AlignedVector result(size);
  const auto last = shard.parameters();
  std::copy(last.begin(), last.end(), result.data());
  return result;
}

TEST(Weights, OfOneTrainerWithBatch100AndTwoWith50AreTheSame) {
  const roles::StopSignal stop;
  roles::DataOptions options;
  options.dataset = roles::find_dataset(has_mnist() ? "mnist" : "digits");
  options.directory = data_dir_flag().substr(std::string("--data_dir=").size());
  const data::Dataset dataset = roles::open_dataset(options, stop);
  roles::RunConfig config;
  // Not adam: for a pixel that is hardly ever inked it divides one small sum by the root of
  // another, which amplifies rounding to steps; and twice the gradient would be the same step to
  // it.
  config.optimizer.kind = math::OptimizerKind::kSgd;
  config.isa = math::supported_isas().front();
  config.optimizer.learning_rate = math::default_learning_rate(config.optimizer.kind);
  config.train_steps = kSteps;
  config.trainers = 1;
  config.batch_size = 100;
  math::AlignedVector one = train(dataset, config);
  config.trainers = 2;
  config.batch_size = 50;
  math::AlignedVector two = train(dataset, config);
  float largest = 0;
  for (std::size_t each = 0; each < one.size(); ++each) {
    largest = std::max(largest, std::abs(one.span()[each] - two.span()[each]));
  }
  EXPECT_LE(largest, 1e-5F);
}

}  // namespace
}  // namespace disttf::test_process
