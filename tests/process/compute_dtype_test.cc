// --compute_dtype bf16: products of rounded operands; everything else as without it. The weights do
// not depend on the transport, on the number of ps and threads, or on the instruction set of the
// products.
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

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
