#include "net/transport/header_slot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace disttf::net {
namespace {

constexpr FrameHeader kHeader{.kind = FrameKind::kParameters,
                              .flags = kFlagInPlace,
                              .request_id = 7,
                              .step = 41,
                              .sequence = 4096,
                              .generation = 3};

class HeaderSlotTest : public testing::Test {
 protected:
  alignas(64) std::array<std::byte, kHeaderSlotBytes> slot_{};
  FrameHeader found_;
};

TEST_F(HeaderSlotTest, HoldsTheHeaderAsAFrameHasIt) {
  EXPECT_EQ(header_count(slot_), 0U);
  leave_header(slot_, kHeader);
  std::array<std::byte, kHeaderBytes> frame{};
  encode_header(kHeader, frame);
  EXPECT_TRUE(std::ranges::equal(std::span(slot_).first<kHeaderBytes>(), frame));
  ASSERT_FALSE(read_header(slot_, found_));
  EXPECT_EQ(found_, kHeader);
}

// A late copy of a request has the same answer as the request, and must be seen nevertheless.
TEST_F(HeaderSlotTest, CountsHeadersAlsoOfTheSameRequest) {
  leave_header(slot_, kHeader);
  EXPECT_EQ(header_count(slot_), 2U);
  leave_header(slot_, kHeader);
  EXPECT_EQ(header_count(slot_), 4U);
  EXPECT_EQ(slot_[kHeaderBytes], std::byte{4});
}

TEST_F(HeaderSlotTest, IsNotReadWhereAnyByteOfTheHeaderIsAnother) {
  for (std::size_t each = 0; each < kHeaderBytes; ++each) {
    leave_header(slot_, kHeader);
    slot_[each] ^= std::byte{4};
    EXPECT_TRUE(read_header(slot_, found_)) << "byte " << each;
    EXPECT_EQ(found_, FrameHeader());
  }
}

TEST_F(HeaderSlotTest, AReaderTakesEachHeaderOnce) {
  leave_header(slot_, {.request_id = 6});
  HeaderSlotReader reader;
  reader.skip(slot_);
  EXPECT_FALSE(reader.sees(slot_)) << "it has been left before";
  leave_header(slot_, kHeader);
  ASSERT_TRUE(reader.sees(slot_));
  ASSERT_FALSE(reader.take(slot_, found_));
  EXPECT_EQ(found_, kHeader);
  EXPECT_FALSE(reader.sees(slot_));
}

// Its writer was killed meanwhile, say.
TEST_F(HeaderSlotTest, AReaderDoesNotSeeAHeaderThatIsBeingWritten) {
  slot_[kHeaderBytes] = std::byte{1};
  EXPECT_FALSE(HeaderSlotReader().sees(slot_));
}

// What a peer says of where they lie.
TEST(SlotWithin, IsNowhereIfItIsNotWholeOrNotOnItsBoundary) {
  EXPECT_EQ(slot_within(1024, 896), 896U);
  EXPECT_EQ(slot_within(1024, 960), 0U) << "half of it";
  EXPECT_EQ(slot_within(1024, 900), 0U);
  EXPECT_EQ(slot_within(100, 64), 0U);
  EXPECT_EQ(slot_within(1024, ~std::uint64_t{63}), 0U);
  EXPECT_EQ(sleep_word_within(1024, 1020), 1020U);
  EXPECT_EQ(sleep_word_within(1024, 1018), 0U);
  EXPECT_EQ(sleep_word_within(1024, 1024), 0U);
  EXPECT_EQ(sleep_word_within(2, 0), 0U);
}

TEST(SleepWord, SaysWhetherItsOwnerSleeps) {
  alignas(kSleepWordBytes) std::array<std::byte, kSleepWordBytes> word{};
  EXPECT_FALSE(is_asleep(word));
  set_asleep(word, true);
  EXPECT_TRUE(is_asleep(word));
  set_asleep(word, false);
  EXPECT_FALSE(is_asleep(word));
}

// The order in which both sides do it, many times: an answer that is neither seen nor rung for
// would leave this waiting for ever.
TEST(HeaderSlotAndSleepWord, NoAnswerIsMissed) {
  constexpr std::uint64_t kRounds = 20'000;
  alignas(64) std::array<std::byte, kHeaderSlotBytes> slot{};
  alignas(kSleepWordBytes) std::array<std::byte, kSleepWordBytes> word{};
  std::atomic<std::uint64_t> request{0};
  std::atomic<std::uint64_t> rung{0};  // for which request
  std::thread ps([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      request.wait(round - 1);
      leave_header(slot, {.kind = FrameKind::kParameters, .request_id = round});
      if (is_asleep(word)) {
        rung = round;
        rung.notify_one();
      }
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    request = round;
    request.notify_one();
    FrameHeader found;
    set_asleep(word, true);
    // The ring of the round before may come as late as now, and wakes in vain.
    for (std::uint64_t seen = rung; header_count(slot) != 2 * round; seen = rung) {
      rung.wait(seen);
    }
    wrong += !read_header(slot, found) && found.request_id == round ? 0U : 1U;
    set_asleep(word, false);
  }
  ps.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace disttf::net
