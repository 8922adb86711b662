#include "run/process/note_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(NoteLimit, TellsPeersAndKindsApart) {
  EXPECT_EQ(NoteLimit::kind_of("refused worker 1 (10.0.0.7:2222): malformed frame of 12 bytes"),
            "refused worker 1 ");
  EXPECT_EQ(NoteLimit::kind_of("worker 12 (10.0.0.7:2222) joined at step 345"),
            "worker 12  joined at step ");
  EXPECT_EQ(NoteLimit::kind_of("a (b: c"), "a ");
}

TEST(NoteLimit, WritesTheFirstOfEachPeerAndKind) {
  NoteLimit limit;
  const NoteLimit::Time now;
  for (int worker = 0; worker < 1000; ++worker) {
    const std::string name = "worker " + std::to_string(worker);
    EXPECT_EQ(limit.admit(name + " joined", now), name + " joined");
    EXPECT_EQ(limit.admit(name + " was lost", now), name + " was lost");
  }
}

TEST(NoteLimit, OfAFloodLeavesOneASecondAndSaysHowManyAreMissing) {
  NoteLimit limit;
  const NoteLimit::Time begin;
  std::uint64_t written = 0;
  std::string last;
  for (int step = 0; step < 10'000; ++step) {
    const auto said = limit.admit("refused worker 1 (a:1): number " + std::to_string(step),
                                  begin + milliseconds(step));
    if (said) {
      ++written;
      last = *said;
    }
  }
  EXPECT_EQ(written, NoteLimit::kBurst + 9);
  EXPECT_EQ(last,
            "refused worker 1 (a:1): number 9000 (999 more messages like this were suppressed)");
  EXPECT_EQ(limit.admit("refused worker 2 (a:2): number 1", begin + seconds(10)),
            "refused worker 2 (a:2): number 1")
      << "another peer";
}

TEST(NoteLimit, IsFilledAgainByAQuietTime) {
  NoteLimit limit;
  NoteLimit::Time now;
  for (std::uint64_t each = 0; each < 2 * NoteLimit::kBurst; ++each) {
    static_cast<void>(limit.admit("a 1", now));
  }
  now += seconds(NoteLimit::kBurst);
  for (std::uint64_t each = 0; each < NoteLimit::kBurst; ++each) {
    EXPECT_TRUE(limit.admit("a 1", now)) << each;
  }
  EXPECT_FALSE(limit.admit("a 1", now));
}

}  // namespace
}  // namespace disttf::roles
