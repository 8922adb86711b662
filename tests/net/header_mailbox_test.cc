#include "net/memory/header_mailbox.h"

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

class HeaderMailboxTest : public testing::Test {
 protected:
  alignas(64) std::array<std::byte, kHeaderMailboxBytes> slot_{};
  // A view of memory in which the mailbox lies behind 64 other bytes.
  [[nodiscard]] PeerMailbox peer() const {
    return PeerMailbox(slot_, {.size = 64 + kHeaderMailboxBytes, .slot = 64}, 64);
  }
  FrameHeader found_;
};

TEST_F(HeaderMailboxTest, HoldsHeadersAsFramesHaveThem) {
  EXPECT_EQ(header_count(slot_), 0U);
  leave_header(slot_, {.request_id = 6});
  leave_header(slot_, kHeader);
  EXPECT_EQ(header_count(slot_), 2U);
  EXPECT_EQ(slot_[0], std::byte{2});
  std::array<std::byte, kHeaderBytes> frame{};
  encode_header(kHeader, frame);
  EXPECT_TRUE(std::ranges::equal(std::span(slot_).subspan(2 * kHeaderBytes, kHeaderBytes), frame));
  ASSERT_FALSE(read_header(slot_, 1, found_));
  EXPECT_EQ(found_, kHeader);
}

TEST_F(HeaderMailboxTest, IsNotReadWhereAnyByteOfTheHeaderIsAnother) {
  for (std::size_t each = 0; each < kHeaderBytes; ++each) {
    leave_header(slot_, kHeader);
    const std::uint64_t number = header_count(slot_) - 1;
    slot_[(1 + number % kHeadersInMailbox) * kHeaderBytes + each] ^= std::byte{4};
    EXPECT_TRUE(read_header(slot_, number, found_)) << "byte " << each;
    EXPECT_EQ(found_, FrameHeader());
  }
}

TEST_F(HeaderMailboxTest, AReaderTakesEachHeaderOnceInTheirOrder) {
  leave_header(slot_, {.request_id = 6});
  PeerMailbox reader = peer();
  EXPECT_FALSE(reader.has_new()) << "the header is an old one";
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t id = 1; id <= kHeadersInMailbox; ++id) {
      leave_header(slot_, {.request_id = id});
    }
    for (std::uint64_t id = 1; id <= kHeadersInMailbox; ++id) {
      ASSERT_TRUE(reader.has_new());
      ASSERT_FALSE(reader.take(found_));
      EXPECT_EQ(found_.request_id, id);
    }
    EXPECT_FALSE(reader.has_new());
  }
}

// The writer does not wait for the reader, or is malicious.
TEST_F(HeaderMailboxTest, AReaderKnowsThatHeadersAreLost) {
  PeerMailbox reader = peer();
  for (std::size_t each = 0; each <= kHeadersInMailbox; ++each) {
    leave_header(slot_, kHeader);
  }
  ASSERT_TRUE(reader.has_new());
  EXPECT_EQ(reader.take(found_), WireError::kUnexpected);
  reader.skip();
  EXPECT_FALSE(reader.has_new());
}

TEST_F(HeaderMailboxTest, AReaderHasNothingWhereTheOfferNamesNothing) {
  leave_header(slot_, kHeader);
  for (const PeerMailbox& reader : {PeerMailbox(), PeerMailbox(slot_, {.size = 1024})}) {
    EXPECT_FALSE(reader.has_mailbox());
    EXPECT_FALSE(reader.has_flag());
    EXPECT_FALSE(reader.has_new());
    EXPECT_EQ(reader.owner_token(), 0U);
  }
  PeerMailbox reader = peer();
  leave_header(slot_, kHeader);
  reader.forget_mailbox();
  EXPECT_FALSE(reader.has_new());
}

TEST_F(HeaderMailboxTest, SaysByWhatAgreementItsWriterTakesHeaders) {
  EXPECT_EQ(owner_token_of(slot_), 0U);
  set_owner_token(slot_, 0x0102);
  EXPECT_EQ(owner_token_of(slot_), 0x0102U);
  EXPECT_EQ(peer().owner_token(), 0x0102U);
  EXPECT_EQ(slot_[8], std::byte{2});
  EXPECT_EQ(slot_[9], std::byte{1});
  EXPECT_EQ(header_count(slot_), 0U);
  leave_header(slot_, kHeader);
  EXPECT_EQ(owner_token_of(slot_), 0x0102U);
  set_owner_token(slot_, 0);
  EXPECT_EQ(owner_token_of(slot_), 0U);
}

TEST(LeftRequest, IsAPushInMemoryOrAPull) {
  EXPECT_TRUE(is_left_request({.kind = FrameKind::kPushPull, .flags = kFlagInPlace}));
  EXPECT_TRUE(is_left_request({.kind = FrameKind::kPush, .flags = kFlagInPlace, .body_size = 4}));
  EXPECT_TRUE(is_left_request({.kind = FrameKind::kPull, .flags = kFlagNext}));
  EXPECT_FALSE(is_left_request({.kind = FrameKind::kPushPull}));
  EXPECT_FALSE(is_left_request({.kind = FrameKind::kPull, .body_size = 4}));
  EXPECT_FALSE(is_left_request({.kind = FrameKind::kPull, .flags = kFlagInPlace}));
  EXPECT_FALSE(is_left_request({.kind = FrameKind::kRestore, .flags = kFlagInPlace}));
}

// The position that a peer claims for the slot.
TEST(MailboxWithin, IsNowhereIfItIsNotWholeOrNotOnItsBoundary) {
  EXPECT_EQ(mailbox_within(1024, 512), 512U);
  EXPECT_EQ(mailbox_within(1024, 576), 0U) << "only a part is inside";
  EXPECT_EQ(mailbox_within(1024, 500), 0U);
  EXPECT_EQ(mailbox_within(100, 64), 0U);
  EXPECT_EQ(mailbox_within(1024, ~std::uint64_t{63}), 0U);
  EXPECT_EQ(parked_flag_within(1024, 1020), 1020U);
  EXPECT_EQ(parked_flag_within(1024, 1018), 0U);
  EXPECT_EQ(parked_flag_within(1024, 1024), 0U);
  EXPECT_EQ(parked_flag_within(2, 0), 0U);
}

TEST(ParkedFlag, SaysWhetherItsOwnerIsParked) {
  alignas(kParkedFlagBytes) std::array<std::byte, kParkedFlagBytes> word{};
  EXPECT_FALSE(is_parked(word));
  set_parked(word, true);
  EXPECT_TRUE(is_parked(word));
  set_parked(word, false);
  EXPECT_FALSE(is_parked(word));
}

// Repeats the order of operations of both sides many times: an answer that is neither seen nor
// announced by a wake would block this test forever.
TEST(HeaderMailboxAndParkedFlag, NoAnswerIsMissed) {
  constexpr std::uint64_t kRounds = 20'000;
  alignas(64) std::array<std::byte, kHeaderMailboxBytes> slot{};
  alignas(kParkedFlagBytes) std::array<std::byte, kParkedFlagBytes> word{};
  std::atomic<std::uint64_t> request{0};
  std::atomic<std::uint64_t> rung{0};  // the request whose wake came last
  std::thread ps([&] {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      request.wait(round - 1);
      leave_header(slot, {.kind = FrameKind::kParameters, .request_id = round});
      if (is_parked(word)) {
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
    set_parked(word, true);
    // The wake of the previous round may arrive only now, and then wakes without effect.
    for (std::uint64_t seen = rung; header_count(slot) != round; seen = rung) {
      rung.wait(seen);
    }
    wrong += !read_header(slot, round - 1, found) && found.request_id == round ? 0U : 1U;
    set_parked(word, false);
  }
  ps.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace disttf::net
