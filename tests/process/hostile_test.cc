// Unauthenticated peers on a ps's port during a run: the run is not affected.
//
// Each case freezes a worker to keep the run open, attacks, and lets the worker continue: the final
// weights must be those of an undisturbed run. Without authentication, an impostor with the
// addresses, and so the cluster's hash, may take a worker's place: such cases are in
// impostor_test.cc, on a ps without a run.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <deque>
#include <random>

#include "tests/process/process_test.h"
#include "tests/process/raw_peer.h"

namespace disttf::test_process {
namespace {

using net::FrameKind;
using net::Job;

const Words kRun = {"--train_steps=60", "--print_weights_hash", "--log_every=1"};

class Hostile : public ProcessTest {
 protected:
  // A run that is frozen in the middle of a step.
  void SetUp() override {
    tasks_ = run_cluster(cluster_, kRun + Words{"--debug_delay_ms=5", "--heartbeat_timeout=120"});
    ASSERT_TRUE(says(*tasks_.trainers[1], "training step 10 done"));
    tasks_.trainers[1]->send(SIGSTOP);
  }

  // The frozen worker continues; all tasks exit with 0 and the right weights.
  void TearDown() override {
    tasks_.trainers[1]->send(SIGCONT);
    EXPECT_TRUE(all_exit(tasks_.all(), kExitDone));
    Process& undisturbed = run("undisturbed", Words{"launch"} + kRun + data_flags());
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    EXPECT_EQ(weights_hash_in(tasks_.chief()), weights_hash_in(undisturbed));
  }

  // Sends the bytes, expects the ps to close the connection, and returns its answer.
  Bytes answer_to(std::span<const std::byte> bytes) {
    const RawPeer peer(port());
    peer.write(bytes);
    bool timed_out = false;
    Bytes answer = peer.read_to_end(kPatience, timed_out);
    EXPECT_FALSE(timed_out) << "the ps kept the connection";
    return answer;
  }
  void expect_closed_without_a_word(std::span<const std::byte> bytes) {
    EXPECT_EQ(answer_to(bytes).size(), 0U);
  }
  void expect_refused(std::span<const std::byte> bytes, const std::string& sentence) {
    const auto refusal = refusal_in(answer_to(bytes));
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->exit_code, kExitUsage);
    EXPECT_THAT(refusal->sentence, ::testing::HasSubstr(sentence));
  }

  [[nodiscard]] std::uint16_t port() const { return cluster_.tasks().ps.front().port; }
  [[nodiscard]] net::Hello hello() const {
    return {.cluster = net::hash_of(cluster_.tasks()),
            .from = {.job = Job::kWorker, .index = 1},
            .to = {.job = Job::kPs, .index = 0},
            .purpose = net::ChannelPurpose::kStep,
            .incarnation = 77};
  }
  // Returns a HELLO in which the header byte `at` is changed, so that the checksum does not match.
  [[nodiscard]] Bytes changed_hello(std::size_t at) const {
    Bytes bytes = hello_frame(hello());
    bytes[at] ^= std::byte{0xFF};
    return bytes;
  }

  const ClusterOnLoopback cluster_;
  Tasks tasks_;
};

TEST_F(Hostile, HttpClient) {
  expect_closed_without_a_word(bytes_of("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
}

TEST_F(Hostile, TlsClient) {
  Bytes hello = bytes_of("\x16\x03\x01\x02");
  hello.resize(512, std::byte{1});
  expect_refused(hello, "has no secret or certificate for TLS");
}

TEST_F(Hostile, RandomBytes) {
  constexpr int kAttempts = 200;
  std::mt19937 random(1);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Bytes bytes(1 + random() % 300);
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random());
    }
    expect_closed_without_a_word(bytes);
  }
}

TEST_F(Hostile, BytesAfterARightMagic) {
  Bytes bytes = bytes_of("DTF1");
  bytes.resize(net::kHeaderBytes, std::byte{0x55});
  // Byte 4 is the version: only this change gets an answer.
  expect_refused(bytes,
                 "speaks wire version " + std::to_string(net::kWireVersion) + " and no other");
}

TEST_F(Hostile, WrongMagic) { expect_closed_without_a_word(changed_hello(0)); }
TEST_F(Hostile, WrongChecksum) { expect_closed_without_a_word(changed_hello(60)); }

TEST_F(Hostile, UnknownKind) {
  expect_closed_without_a_word(frame({.kind = FrameKind{0xEE}}, net::encode(hello())));
}

TEST_F(Hostile, UnknownFlag) {
  expect_closed_without_a_word(
      frame({.kind = FrameKind::kHello, .flags = 0x8000}, net::encode(hello())));
}

TEST_F(Hostile, OtherVersion) {
  constexpr std::size_t kVersionAt = 4;
  expect_refused(changed_hello(kVersionAt),
                 "speaks wire version " + std::to_string(net::kWireVersion) + " and no other");
}

TEST_F(Hostile, HugeBodySize) {
  Bytes bytes(net::kHeaderBytes);
  net::encode_header({.kind = FrameKind::kHello, .body_size = ~std::uint64_t{0}},
                     std::span(bytes).first<net::kHeaderBytes>());
  expect_refused(bytes, "expected a HELLO as the first frame");
}

TEST_F(Hostile, GradientInsteadOfAHello) {
  const Bytes gradient(4096);
  expect_refused(frame({.kind = FrameKind::kPushPull, .step = 10, .generation = 1}, gradient),
                 "expected a HELLO as the first frame");
}

TEST_F(Hostile, HelloOfAnotherCluster) {
  net::Hello other = hello();
  other.cluster[0] ^= 1;
  expect_refused(hello_frame(other), "your address lists");
}

TEST_F(Hostile, HelloOfAWorkerThatDoesNotExist) {
  net::Hello other = hello();
  other.from.index = 2;
  expect_refused(hello_frame(other), "there is no worker 2");
}

TEST_F(Hostile, HelloOfAHugeIndex) {
  net::Hello other = hello();
  other.from.index = 0xFFFFFFFF;
  expect_refused(hello_frame(other), "there is no worker 4294967295");
}

TEST_F(Hostile, HelloToAnotherPs) {
  net::Hello other = hello();
  other.to.index = 1;
  expect_refused(hello_frame(other), "this is ps 0");
}

TEST_F(Hostile, ProbeThatGoesOnTalking) {
  net::Hello probe = hello();
  probe.purpose = net::ChannelPurpose::kProbe;
  Bytes bytes = hello_frame(probe);
  const Bytes shutdown = frame({.kind = FrameKind::kShutdown});
  bytes.insert(bytes.end(), shutdown.begin(), shutdown.end());
  EXPECT_FALSE(refusal_in(answer_to(bytes)).has_value()) << "expected a WELCOME, then nothing";
}

TEST_F(Hostile, HalfAHelloAndSilence) {
  Bytes bytes = hello_frame(hello());
  bytes.resize(bytes.size() - 1);
  expect_closed_without_a_word(bytes);
}

TEST_F(Hostile, ConnectionsThatStaySilent) {
  constexpr int kCount = 200;
  std::deque<RawPeer> peers;
  for (int each = 0; each < kCount; ++each) {
    peers.emplace_back(port());
  }
  for (const RawPeer& peer : peers) {
    bool timed_out = false;
    EXPECT_EQ(peer.read_to_end(kPatience, timed_out).size(), 0U);
    ASSERT_FALSE(timed_out);  // does not wait for the others
  }
}

TEST_F(Hostile, TenThousandConnections) {
  constexpr std::size_t kCount = 10'000;
  constexpr std::size_t kOthers = 200;  // this process's other descriptors
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::size_t at_once = std::min<std::size_t>(kCount, limit.rlim_cur - kOthers);
  std::fprintf(stderr, "%zu connections, at most %zu at once\n", kCount, at_once);
  std::deque<RawPeer> peers;
  for (std::size_t each = 0; each < kCount; ++each) {
    if (peers.size() == at_once) {
      peers.pop_front();
    }
    peers.emplace_back(port());
  }
  EXPECT_TRUE(says(*tasks_.ps[0], "too many handshakes at once: dropped the oldest"));
}

// While connections come and go, so do the run's own: a worker can still rejoin.
TEST_F(Hostile, ManyConnectionsWhileAWorkerComesBack) {
  tasks_.trainers[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks_.trainers[1], SIGKILL));
  Process& again = run_task(cluster_, Job::kWorker, 1);
  std::deque<RawPeer> peers;
  for (int each = 0; each < 1000; ++each) {
    peers.emplace_back(port());
    peers.back().write(bytes_of("DTF1"));
  }
  tasks_.trainers[1] = &again;
}

}  // namespace
}  // namespace disttf::test_process
