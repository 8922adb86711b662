#include "net/wire/handshake.h"

#include <gtest/gtest.h>

#include "net/wire/cluster.h"
#include "tests/net/wire_bytes.h"

namespace disttf::net {
namespace {

// The frame in docs/wire_format.md: worker 1 of a run on one machine sends HELLO to ps 0.
[[nodiscard]] Hello documented_hello() {
  Cluster cluster;
  cluster.ps = parse_address_list("ps", "127.0.0.1:2222");
  cluster.workers = parse_address_list("worker", "127.0.0.1:2223,127.0.0.1:2224");
  return {.cluster = hash_of(cluster),
          .from = {Job::kWorker, 1},
          .to = {Job::kPs, 0},
          .purpose = ChannelPurpose::kStep,
          .incarnation = 0x0123456789ABCDEF,
          .last = {.generation = 3, .step = 2000, .push = 2001}};
}

TEST(Hello, HasTheBytesOfTheDocument) {
  const std::vector<std::byte> body = encode(documented_hello());
  std::array<std::byte, kHeaderBytes> header{};
  encode_header({.kind = FrameKind::kHello, .request_id = 1, .body_size = body.size()}, header);
  EXPECT_EQ(hex(header),
            "445446310701000001000000000000004c000000000000000000000000000000"
            "00000000000000000000000000000000000000000000000000000000e4a1c31a");
  EXPECT_EQ(hex(body),
            "499586f058786688809ace4fbe13a0f73171d18117e9773e22d737fa12b9f0e2"
            "efcdab8967452301"
            "0300000000000000"
            "d007000000000000"
            "d107000000000000"
            "01000000"
            "00000000"
            "02010100");
}

TEST(Hello, IsReadBackAndHasOneLength) { expect_read_back(documented_hello()); }

TEST(Hello, RejectsValuesThatMeanNothing) {
  for (const std::size_t job_at : {72U, 73U}) {
    EXPECT_EQ(decode_with(documented_hello(), job_at, 0), WireError::kBadBody);
    EXPECT_EQ(decode_with(documented_hello(), job_at, 5), WireError::kBadBody);
  }
  EXPECT_EQ(decode_with(documented_hello(), 74, 0), WireError::kBadBody);
  EXPECT_EQ(decode_with(documented_hello(), 74, 8), WireError::kBadBody);
  EXPECT_EQ(decode_with(documented_hello(), 75, 2), WireError::kBadBody);
}

constexpr Welcome kWelcome{.incarnation = 0x1122334455667788,
                           .state = ShardState::kFinished,
                           .generation = 3,
                           .step = 2000,
                           .heartbeat_ms = 1000};

TEST(Welcome, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex(encode(kWelcome)),
            "8877665544332211"
            "d007000000000000"
            "0300000000000000"
            "e8030000"
            "02000000");
}

TEST(Hello, NamesTheRangeThatIsMeant) {
  Hello hello = documented_hello();
  hello.purpose = ChannelPurpose::kView;
  hello.replica = 1;
  EXPECT_EQ(hex(encode(hello)).substr(2 * 72), "02010601");
  Hello out;
  ASSERT_FALSE(decode(encode(hello), out));
  EXPECT_EQ(out, hello);
}

TEST(Welcome, SaysWhatTheHostIs) {
  Welcome welcome = kWelcome;
  welcome.replica_role = ReplicaRole::kBackup;
  EXPECT_EQ(hex(encode(welcome)).substr(2 * 28), "02020000");
  Welcome out;
  ASSERT_FALSE(decode(encode(welcome), out));
  EXPECT_EQ(out, welcome);
}

TEST(Welcome, IsReadBackAndHasOneLength) { expect_read_back(kWelcome); }

TEST(Welcome, RejectsValuesThatMeanNothing) {
  EXPECT_EQ(decode_with(kWelcome, 28, 3), WireError::kBadBody);
  EXPECT_EQ(decode_with(kWelcome, 29, 3), WireError::kBadBody);
  EXPECT_EQ(decode_with(kWelcome, 30, 1), WireError::kBadBody);
  EXPECT_EQ(decode_with(kWelcome, 31, 1), WireError::kBadBody);
}

TEST(Refusal, HasTheBytesOfTheDocument) {
  EXPECT_EQ(
      hex(encode(Refusal{.exit_code = 138, .sentence = "no", .replaced_by = 0x1122334455667788})),
      "8a000000"
      "8877665544332211"
      "6e6f");
}

TEST(Refusal, SurvivesARoundTrip) {
  const Refusal refusal{
      .exit_code = 138, .sentence = "ps 1 is gone – restart me", .replaced_by = 0x1122334455667788};
  Refusal out;
  ASSERT_FALSE(decode(encode(refusal), out));
  EXPECT_EQ(out, refusal);
}

TEST(Refusal, CutsALongSentenceBetweenCharacters) {
  Refusal refusal;
  while (refusal.sentence.size() <= kMaxSentenceBytes) refusal.sentence += "\u20AC";  // 3 bytes
  Refusal out;
  ASSERT_FALSE(decode(encode(refusal), out));
  EXPECT_EQ(out.sentence.size(), kMaxSentenceBytes / 3 * 3);
  EXPECT_EQ(out.sentence, refusal.sentence.substr(0, out.sentence.size()));
}

TEST(Refusal, RejectsASentenceThatIsTooLong) {
  Refusal out;
  EXPECT_EQ(decode(std::vector<std::byte>(12 + kMaxSentenceBytes + 1), out), WireError::kBadBody);
}

TEST(Refusal, RejectsReservedBytesAndShortBodies) {
  EXPECT_EQ(decode_with(Refusal{}, 1, 1), WireError::kBadBody);
  Refusal out;
  EXPECT_EQ(decode(std::vector<std::byte>(3), out), WireError::kBadBody);
}

TEST(Refusal, MakesAHostileSentenceSafeToLog) {
  Refusal out;
  ASSERT_FALSE(decode(encode(Refusal{.sentence = "a\nb\x1b[2Jc\xFF"}), out));
  EXPECT_EQ(out.sentence, "a b [2Jc?");
}

}  // namespace
}  // namespace disttf::net
