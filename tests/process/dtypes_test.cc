// --wire_dtype and --compress: fewer bytes, and everything else as without them. The weights do not
// depend on the transport or the number of ps; with rounding they do not depend on killed tasks
// either, with topk only as long as no trainer is killed.
#include <array>
#include <atomic>
#include <csignal>
#include <string>
#include <vector>

#include "tests/process/process_test.h"
#include "tests/process/relay.h"

namespace disttf::test_process {
namespace {

using net::FrameKind;
using net::Job;

const Words kRun = {"--train_steps=120", "--print_weights_hash"};
const Words kBf16 = {"--wire_dtype=bf16"};
const Words kInt8 = {"--wire_dtype=int8"};
const Words kInt4 = {"--wire_dtype=int4"};
const Words kTopK = {"--compress=topk:0.01"};
const Words kSlowly = {"--debug_delay_ms=30", "--log_every=1", "--save_steps=20"};
constexpr const char* kLastWarning = "that it has not pushed yet is lost";

class WireDtype : public ProcessTest {
 protected:
  Process& launch(const Words& arguments) {
    return run("launch", Words{"launch"} + arguments + kRun + data_flags());
  }
  std::string hash_of(const Words& arguments) {
    Process& job = launch(arguments);
    EXPECT_TRUE(exits(job, kExitDone));
    return weights_hash_in(job);
  }
};

class WireForm : public WireDtype, public ::testing::WithParamInterface<Words> {};
std::string form_name(const ::testing::TestParamInfo<Words>& form) {
  constexpr std::array kNames = {"Bf16", "Int4", "TopK", "TopKAndInt8"};
  return kNames.at(form.index);
}
INSTANTIATE_TEST_SUITE_P(All, WireForm, ::testing::Values(kBf16, kInt4, kTopK, kTopK + kInt8),
                         form_name);

TEST_P(WireForm, BitIdenticalWhateverTransportAndNumberOfPs) {
  const Words flags = Words{"--workers=3"} + GetParam();
  const std::string one = hash_of(flags + Words{"--transport=shm"});
  ASSERT_EQ(one.size(), 64U);
  for (const char* ps : {"--ps=1", "--ps=2", "--ps=3"}) {
    EXPECT_EQ(hash_of(flags + Words{"--transport=tcp", ps}), one) << ps;
  }
  EXPECT_EQ(hash_of(flags + Words{"--transport=shm", "--ps=3"}), one);
  EXPECT_NE(hash_of({"--workers=3"}), one) << "the flags have no effect";
}

// With so small a model the second ps holds an empty range.
TEST_P(WireForm, HasAnEmptyGradientOfAnEmptyRange) {
  const Words flags = Words{"--dataset=digits", "--hidden_units=1", "--workers=2",
                            "--train_steps=20", "--print_weights_hash"} +
                      GetParam();
  std::vector<std::string> hashes;
  for (const Words& more :
       {Words{"--ps=1"}, Words{"--ps=2", "--transport=shm"}, Words{"--ps=2", "--transport=tcp"},
        Words{"--ps=2", "--ps_replicas=2"}}) {
    Process& job = run("launch", Words{"launch"} + flags + more);
    ASSERT_TRUE(exits(job, kExitDone)) << more.back();
    hashes.push_back(weights_hash_in(job));
  }
  EXPECT_EQ(hashes, std::vector<std::string>(hashes.size(), hashes.front()));
}

// Requests are repeated, duplicated and late; no trainer dies.
TEST_P(WireForm, BitIdenticalWhateverHappensToFrames) {
  const Words flags = Words{"--workers=3", "--ps=2"} + GetParam();
  EXPECT_EQ(hash_of(flags + Words{"--chaos_frames=1,100", "--transport=tcp"}), hash_of(flags));
}

TEST_P(WireForm, BitIdenticalWhenACopyTakesOver) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  const Words flags =
      kRun + GetParam() + Words{"--ps_replicas=2", "--log_every=1", "--debug_delay_ms=30"};
  Tasks tasks = run_cluster(cluster, flags);
  ASSERT_NO_FATAL_FAILURE(lose_a_primary(cluster, flags, tasks));
  expect_weights_of_launch(tasks.trainers, Words{"--workers=2"} + kRun + GetParam());
}

TEST_P(WireForm, TrainsWithBackupWorkersAndAsync) {
  for (const char* mode : {"--replicas_to_aggregate=2", "--sync_replicas=false"}) {
    Process& job = run("launch", Words{"launch", "--workers=3", "--ps=2", "--train_steps=600", mode,
                                       "--transport=tcp"} +
                                     GetParam() + data_flags());
    ASSERT_TRUE(exits(job, kExitDone)) << mode;
    EXPECT_GT(accuracy_in(job), 0.9) << mode;
  }
}

TEST_F(WireDtype, RoundingIsBitIdenticalWhateverIsKilled) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2, .chief = true});
  for (const Words& form : {kBf16 + Words{"--transport=tcp"}, kBf16 + Words{"--transport=shm"},
                            kInt8 + Words{"--transport=tcp"}, kInt4 + Words{"--transport=shm"}}) {
    const Words flags = kRun + form + kSlowly;
    Tasks tasks = run_cluster(cluster, flags);
    ASSERT_TRUE(says(tasks.chief(), "global step: [4-9][0-9],"));
    ASSERT_NO_FATAL_FAILURE(kill_and_start_again(cluster, tasks, {}, flags));
    ASSERT_TRUE(all_exit(tasks.all(), kExitDone));
    expect_weights_of_launch(tasks.trainers, Words{"--workers=2", "--chief"} + kRun + form);
  }
}

TEST_F(WireDtype, RoundingIsBitIdenticalWhicheverTrainerComputesAMicroBatch) {
  const Words elastic = kInt8 + Words{"--min_workers=1", "--micro_batches=4"};
  EXPECT_EQ(hash_of(Words{"--workers=3", "--ps=2"} + elastic),
            hash_of(Words{"--workers=1"} + elastic));
}

// The log states the cost at the beginning.
TEST_F(WireDtype, TopKGoesOnWithoutWhatAKilledTrainerHadKept) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2});
  Tasks tasks = run_cluster(cluster, kRun + kTopK + kSlowly);
  ASSERT_TRUE(says(tasks.chief(), kLastWarning));
  ASSERT_TRUE(says(tasks.chief(), "global step: [4-9][0-9],"));
  tasks.trainers[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.trainers[1], SIGKILL));
  tasks.trainers[1] = &run_task(cluster, Job::kWorker, 1);
  ASSERT_TRUE(all_exit(tasks.all(), kExitDone));
  EXPECT_EQ(count_of(tasks.chief().standard_error(), kLastWarning), 1U);
}

TEST_F(WireDtype, TopKIsRefusedWithElasticWorkers) {
  Process& job = launch(kTopK + Words{"--min_workers=1"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(
      says(job, "--compress: topk:0.01 is not allowed with --min_workers, --max_workers or"));
}

TEST_F(WireDtype, IsTheChiefsToSay) {
  Process& worker = run_contradicting_worker(kRun, kBf16);
  EXPECT_TRUE(exits(worker, kExitUsage));
  EXPECT_TRUE(says(worker, "--wire_dtype: this task was given \"bf16\", the chief published"));
}

// The longest frames of a run with the given flags, as they pass between its tasks.
class WireBytes : public WireDtype {
 protected:
  struct Longest {
    std::atomic<std::uint64_t> push = 0;
    std::atomic<std::uint64_t> reply = 0;
  };
  void measure(const Words& flags, Longest& longest) {
    const auto raise = [](std::atomic<std::uint64_t>& value, std::uint64_t to) {
      std::uint64_t seen = value;
      while (seen < to && !value.compare_exchange_weak(seen, to)) {
      }
    };
    const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
    const Relay relay(cluster, 0, [&](const Passing& passing) {
      if (passing.header.kind == FrameKind::kPushPull) {
        raise(longest.push, passing.header.body_size);
      }
      const bool is_first_or_last =  // exact: the answer to a PULL, and the final ones
          passing.header.sequence == 0 || (passing.header.flags & net::kFlagFinished) != 0;
      if (passing.header.kind == FrameKind::kParameters && !is_first_or_last) {
        raise(longest.reply, passing.header.body_size);
      }
      return whole(passing.header);
    });
    const Words run = kRun + Words{"--transport=tcp", "--model=softmax"} + flags;
    Process& ps = run_task(cluster, Job::kPs, 0, {relay.listen_flag()});
    Process& worker = run_task(cluster, Job::kWorker, 0, run);
    ASSERT_TRUE(all_exit({&ps, &worker}, kExitDone));
  }
  static constexpr std::uint64_t kFloats = 784 * 10 + 16;  // with padding
};

TEST_F(WireBytes, AreHalfAsManyInBf16) {
  Longest f32;
  Longest bf16;
  measure({}, f32);
  measure(kBf16, bf16);
  EXPECT_EQ(f32.push, 4 * kFloats);
  EXPECT_EQ(f32.reply, 4 * kFloats);
  EXPECT_EQ(bf16.push, 2 * kFloats);
  EXPECT_EQ(bf16.reply, 2 * kFloats);
}

TEST_F(WireBytes, AreAQuarterAndAnEighthInBlocks) {
  Longest int8;
  Longest int4;
  measure(kInt8, int8);
  measure(kInt4, int4);
  EXPECT_EQ(int8.push, kFloats + kFloats / 16);
  EXPECT_EQ(int8.reply, kFloats + kFloats / 16);
  EXPECT_EQ(int4.push, kFloats / 2 + kFloats / 16);
  EXPECT_EQ(int4.reply, kFloats / 2 + kFloats / 16);
}

TEST_F(WireBytes, AreThoseOfTheComponentsWithTopK) {
  constexpr std::uint64_t kComponents = kFloats / 100 + 1;
  Longest top_k;
  Longest both;
  measure(kTopK, top_k);
  measure(kTopK + kBf16, both);
  EXPECT_EQ(top_k.push, 8 * kComponents);
  EXPECT_EQ(top_k.reply, 4 * kFloats);
  EXPECT_EQ(both.push, 6 * kComponents);
  EXPECT_EQ(both.reply, 2 * kFloats);
}

// --compute_dtype bf16: products of rounded operands; everything else as without it. The weights do
// not depend on the transport, on the number of ps and threads, or on the instruction set of the
// products.

const Words kBfloat = {"--compute_dtype=bf16"};
const Words kShort = {"--train_steps=120", "--print_weights_hash"};

// (A CPU without AVX2 cannot compute these products; its error message is tested everywhere.)
class ComputeDtype : public ProcessTest {
 protected:
  void SetUp() override {
    if (!has_fused_multiply_add()) {
      GTEST_SKIP() << "this CPU has no AVX2 with FMA";
    }
  }
  static bool has_fused_multiply_add() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
#else
    return false;
#endif
  }
  static bool has_avx512() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
           __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#else
    return false;
#endif
  }
  Process& launch(const Words& arguments) {
    return run("launch", Words{"launch"} + arguments + data_flags());
  }
  std::string hash_of(const Words& arguments) {
    Process& job = launch(arguments + kShort);
    EXPECT_TRUE(exits(job, kExitDone));
    return weights_hash_in(job);
  }
};

TEST_F(ComputeDtype, Bf16ReachesTheAccuracyOfTheTutorials) {
  Process& job = launch(kBfloat + Words{"--workers=2", "--ps=1"});
  ASSERT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "Products of bfloat16 are made by "));
  EXPECT_GE(accuracy_in(job), has_mnist() ? 0.975 : 0.97);
}

TEST_F(ComputeDtype, BitIdenticalWhateverTransportAndNumberOfPsAndThreads) {
  const Words flags = kBfloat + Words{"--workers=3"};
  const std::string one = hash_of(flags + Words{"--transport=shm"});
  ASSERT_EQ(one.size(), 64U);
  for (const char* ps : {"--ps=1", "--ps=2", "--ps=3"}) {
    EXPECT_EQ(hash_of(flags + Words{"--transport=tcp", ps}), one) << ps;
  }
  EXPECT_EQ(hash_of(flags + Words{"--transport=shm", "--ps=3"}), one);
  EXPECT_EQ(hash_of(flags + Words{"--threads=2"}), one);
  EXPECT_NE(hash_of({"--workers=3"}), one) << "the flag has no effect";
}

TEST_F(ComputeDtype, BitIdenticalOfConvolutions) {
  const Words flags =
      Words{"--config=" + (source_directory() / "tests/process/network.toml").string(),
            "--batch_size=10", "--workers=3"};
  const auto hash = [&](const Words& others) {
    Process& job = launch(others + flags + Words{"--train_steps=20", "--print_weights_hash"});
    EXPECT_TRUE(exits(job, kExitDone));
    return weights_hash_in(job);
  };
  const std::string one = hash(kBfloat + Words{"--transport=shm"});
  ASSERT_EQ(one.size(), 64U);
  EXPECT_EQ(hash(kBfloat + Words{"--transport=tcp", "--ps=3", "--threads=2", "--isa=avx2"}), one);
  EXPECT_NE(hash({}), one) << "the flag has no effect";
}

// With AVX-512 the tile unit (AMX) computes the products, if there is one.
TEST_F(ComputeDtype, BitIdenticalWithAvx2AndAvx512) {
  if (!has_avx512()) {
    GTEST_SKIP() << "this CPU has no AVX-512";
  }
  const Words flags = kBfloat + Words{"--hidden_units=70,40", "--batch_size=37"};
  EXPECT_EQ(hash_of(flags + Words{"--isa=avx2"}), hash_of(flags + Words{"--isa=avx512"}));
}

TEST_F(ComputeDtype, IsTheChiefsToSay) {
  Process& worker = run_contradicting_worker(kShort, kBfloat);
  EXPECT_TRUE(exits(worker, kExitUsage));
  EXPECT_TRUE(says(worker, "--compute_dtype: this task was given \"bf16\", the chief published"));
}

class ComputeDtypeAnywhere : public ComputeDtype {
 protected:
  void SetUp() override {}
};

TEST_F(ComputeDtypeAnywhere, Bf16IsRefusedWithTheGenericSet) {
  Process& job = launch(kBfloat + Words{"--isa=generic"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--compute_dtype: bf16 is not allowed with --isa generic, which lacks"));
}

TEST_F(ComputeDtypeAnywhere, IsOneOfTwo) {
  Process& job = launch({"--compute_dtype=f16"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "--compute_dtype: \"f16\" is not f32 or bf16"));
}

}  // namespace
}  // namespace disttf::test_process
