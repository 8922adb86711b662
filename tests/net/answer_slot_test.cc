#include "net/transport/answer_slot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace disttf::net {
namespace {

constexpr FrameHeader kAnswer{.kind = FrameKind::kParameters,
                              .flags = kFlagInPlace,
                              .request_id = 7,
                              .step = 41,
                              .sequence = 4096,
                              .generation = 3};

class AnswerSlotTest : public testing::Test {
 protected:
  alignas(64) std::array<std::byte, kAnswerSlotBytes> slot_{};
  FrameHeader found_;
};

TEST_F(AnswerSlotTest, HoldsTheHeaderAsAFrameHasIt) {
  EXPECT_EQ(answer_count(slot_), 0U);
  leave_answer(slot_, kAnswer);
  std::array<std::byte, kHeaderBytes> frame{};
  encode_header(kAnswer, frame);
  EXPECT_TRUE(std::ranges::equal(std::span(slot_).first<kHeaderBytes>(), frame));
  ASSERT_FALSE(read_answer(slot_, found_));
  EXPECT_EQ(found_, kAnswer);
}

// A late copy of a request has the same answer as the request, and must be seen nevertheless.
TEST_F(AnswerSlotTest, CountsAnswersAlsoToTheSameRequest) {
  leave_answer(slot_, kAnswer);
  EXPECT_EQ(answer_count(slot_), 2U);
  leave_answer(slot_, kAnswer);
  EXPECT_EQ(answer_count(slot_), 4U);
  EXPECT_EQ(slot_[kHeaderBytes], std::byte{4});
}

TEST_F(AnswerSlotTest, IsNotReadWhereAnyByteOfTheHeaderIsAnother) {
  for (std::size_t each = 0; each < kHeaderBytes; ++each) {
    leave_answer(slot_, kAnswer);
    slot_[each] ^= std::byte{4};
    EXPECT_TRUE(read_answer(slot_, found_)) << "byte " << each;
    EXPECT_EQ(found_, FrameHeader());
  }
}

TEST(SleepWord, SaysWhetherItsTrainerSleeps) {
  alignas(kSleepWordBytes) std::array<std::byte, kSleepWordBytes> word{};
  EXPECT_FALSE(is_asleep(word));
  set_asleep(word, true);
  EXPECT_TRUE(is_asleep(word));
  set_asleep(word, false);
  EXPECT_FALSE(is_asleep(word));
}

// The order in which both sides do it, many times: an answer that is neither seen nor rung for
// would leave this waiting for ever.
TEST(AnswerSlotAndSleepWord, NoAnswerIsMissed) {
  constexpr std::uint64_t kRounds = 20'000;
  alignas(64) std::array<std::byte, kAnswerSlotBytes> slot{};
  alignas(kSleepWordBytes) std::array<std::byte, kSleepWordBytes> word{};
  std::atomic<std::uint64_t> request{0};
  std::atomic<std::uint64_t> rung{0};  // for which request
  std::thread ps([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      request.wait(round - 1);
      leave_answer(slot, {.kind = FrameKind::kParameters, .request_id = round});
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
    for (std::uint64_t seen = rung; answer_count(slot) != 2 * round; seen = rung) {
      rung.wait(seen);
    }
    wrong += !read_answer(slot, found) && found.request_id == round ? 0U : 1U;
    set_asleep(word, false);
  }
  ps.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace disttf::net
