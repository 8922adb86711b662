#include "net/memory/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "net/memory/bodies_in_place.h"
#include "net/memory/header_mailbox.h"
#include "net/wire/frame.h"

namespace disttf::net {
namespace {

constexpr std::size_t kSize = 10'000;
constexpr std::size_t kMost = std::size_t{1} << 20U;  // the largest size in these tests

// Returns a descriptor as if a peer had sent it.
Descriptor copy_of(int descriptor) { return Descriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }

std::shared_ptr<const SharedView> view_of(const SharedMemory& memory) {
  std::error_code error;
  auto view =
      SharedView::map(copy_of(memory.descriptor()), {.size = memory.bytes().size()}, kMost, error);
  EXPECT_TRUE(view) << error.message();
  return view;
}

class SharedMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::error_code error;
    memory_ = SharedMemory::create(kSize, error);
    ASSERT_TRUE(memory_) << error.message();
  }
  static bool maps(int descriptor, std::uint64_t size = kSize) {
    std::error_code error;
    const bool mapped =
        SharedView::map(copy_of(descriptor), {.size = size}, kMost, error) != nullptr;
    EXPECT_NE(mapped, static_cast<bool>(error));
    return mapped;
  }

  std::unique_ptr<SharedMemory> memory_;
};

TEST_F(SharedMemoryTest, IsZeroedAndBeginsOnAPage) {
  EXPECT_EQ(memory_->bytes().size(), kSize);
  EXPECT_TRUE(std::ranges::all_of(memory_->bytes(), [](std::byte b) { return b == std::byte{}; }));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory_->bytes().data()) % 4096, 0U);
}

TEST_F(SharedMemoryTest, ViewShowsWhatTheOwnerWritesLater) {
  const auto view = view_of(*memory_);
  ASSERT_EQ(view->bytes().size(), kSize);
  memory_->bytes().back() = std::byte{7};
  EXPECT_EQ(view->bytes().back(), std::byte{7});
}

TEST_F(SharedMemoryTest, ViewOutlivesTheOwner) {
  memory_->bytes().front() = std::byte{7};
  const auto view = view_of(*memory_);
  memory_.reset();
  EXPECT_EQ(view->bytes().front(), std::byte{7});
}

// A compromised ps must not be able to write another trainer's gradient.
TEST_F(SharedMemoryTest, WhoIsHandedItCannotWriteItNorChangeItsSize) {
  const int fd = memory_->descriptor();
  EXPECT_EQ(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(pwrite(fd, "x", 1, 0), -1);
  EXPECT_EQ(ftruncate(fd, 0), -1);
  EXPECT_EQ(ftruncate(fd, 2 * kSize), -1);
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1)
      << "it cannot remove the owner's right either";
}

TEST_F(SharedMemoryTest, MemoryOfAnotherSizeIsRefused) {
  const int fd = memory_->descriptor();
  EXPECT_TRUE(maps(fd));
  EXPECT_FALSE(maps(fd, kSize + 1));
  EXPECT_FALSE(maps(fd, kSize - 1));
  EXPECT_FALSE(maps(fd, 0));
  EXPECT_FALSE(maps(fd, std::numeric_limits<std::uint64_t>::max()));
}

// A peer could otherwise shorten the memory during a read, which ends the process with SIGBUS.
TEST_F(SharedMemoryTest, MemoryThatCanShrinkIsRefused) {
  const Descriptor memory(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_TRUE(memory.is_open());
  ASSERT_EQ(ftruncate(memory.number(), kSize), 0);
  EXPECT_FALSE(maps(memory.number()));
  ASSERT_EQ(fcntl(memory.number(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(maps(memory.number())) << "and it was for nothing else";
}

// A peer may offer memory that costs it nothing: pages are allocated only on access.
TEST_F(SharedMemoryTest, MoreThanTheReaderNeedsIsRefusedBeforeItIsMapped) {
  const Descriptor memory(memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_TRUE(memory.is_open());
  ASSERT_EQ(ftruncate(memory.number(), static_cast<off_t>(kMost + 1)), 0);
  ASSERT_EQ(fcntl(memory.number(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const SharedOffer offer{.size = kMost + 1};
  std::error_code error;
  EXPECT_FALSE(SharedView::map(copy_of(memory.number()), offer, kMost, error));
  EXPECT_TRUE(error);
  struct stat status {};
  ASSERT_EQ(fstat(memory.number(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0) << "pages were taken";
  EXPECT_TRUE(SharedView::map(copy_of(memory.number()), offer, kMost + 1, error))
      << "and it was for nothing else";
}

TEST_F(SharedMemoryTest, APartIsMappedInWholePages) {
  memory_->bytes()[5000] = std::byte{7};
  const auto map = [this](std::uint64_t offset, std::uint64_t size, std::size_t most) {
    std::error_code error;
    auto view = SharedView::map_part(copy_of(memory_->descriptor()), {.size = kSize}, offset, size,
                                     most, error);
    EXPECT_NE(view != nullptr, static_cast<bool>(error));
    return view;
  };
  const auto view = map(5000, 100, kPageBytes);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->bytes().size(), 5000 - kPageBytes + 100) << "from the page boundary";
  EXPECT_EQ(view->bytes()[5000 - kPageBytes], std::byte{7});
  memory_->bytes()[5000] = std::byte{8};
  EXPECT_EQ(view->bytes()[5000 - kPageBytes], std::byte{8});
  EXPECT_TRUE(map(kSize - 1, 1, kPageBytes));
  EXPECT_FALSE(map(kSize - 1, 2, kPageBytes)) << "there is no such byte";
  EXPECT_FALSE(map(kSize + 1, 1, kPageBytes));
  EXPECT_FALSE(map(UINT64_MAX, 2, kPageBytes));
  EXPECT_FALSE(map(5000, 0, kPageBytes)) << "nothing";
  EXPECT_FALSE(map(0, kPageBytes + 1, kPageBytes)) << "more than it may be";
}

TEST_F(SharedMemoryTest, FilesAndPipesAreRefused) {
  const std::string path = testing::TempDir() + "disttf_shared_memory_test";
  const Descriptor file(open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.is_open());
  unlink(path.c_str());
  ASSERT_EQ(ftruncate(file.number(), kSize), 0);
  EXPECT_FALSE(maps(file.number()));
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Descriptor read_end(ends[0]);
  const Descriptor write_end(ends[1]);
  EXPECT_FALSE(maps(read_end.number()));
  EXPECT_FALSE(maps(-1)) << "nothing";
}

// Two owners, each with three pages that begin with its letter and the page's number.
class JoinedViewTest : public testing::Test {
 protected:
  using Piece = JoinedView::Piece;
  static constexpr std::size_t kPage = kPageBytes;

  void SetUp() override {
    for (const char letter : {'a', 'b'}) {
      std::error_code error;
      owners_.push_back(SharedMemory::create(3 * kPage, error));
      ASSERT_TRUE(owners_.back()) << error.message();
      for (std::size_t page = 0; page < 3; ++page) {
        auto* at = reinterpret_cast<char*>(owners_.back()->bytes().data()) + page * kPage;
        at[0] = letter;
        at[1] = static_cast<char>('0' + page);
      }
      views_.push_back(view_of(*owners_.back()));
      ASSERT_TRUE(views_.back());
    }
  }
  [[nodiscard]] Piece piece(std::size_t view, std::size_t offset, std::size_t size) const {
    return {.view = views_[view], .offset = offset, .size = size};
  }
  static std::unique_ptr<const JoinedView> map(const std::vector<Piece>& pieces) {
    std::error_code error;
    auto joined = JoinedView::map(pieces, error);
    EXPECT_NE(joined != nullptr, static_cast<bool>(error));
    return joined;
  }
  // Returns the beginning of each page.
  static std::string read(const JoinedView& joined) {
    std::string text;
    for (std::size_t at = 0; at < joined.bytes().size(); at += kPage) {
      text.append(reinterpret_cast<const char*>(joined.bytes().data()) + at, 2);
    }
    return text;
  }

  std::vector<std::unique_ptr<SharedMemory>> owners_;
  std::vector<std::shared_ptr<const SharedView>> views_;
};

TEST_F(JoinedViewTest, ShowsOnePieceBehindTheOtherAndWhatOwnersWriteLater) {
  const auto joined = map({piece(1, kPage, 2 * kPage), piece(0, 0, 0), piece(0, 2 * kPage, 100)});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->bytes().size(), 2 * kPage + 100);
  EXPECT_EQ(read(*joined), "b1b2a2");
  owners_[0]->bytes()[2 * kPage] = std::byte{'A'};
  EXPECT_EQ(read(*joined), "b1b2A2");
}

TEST_F(JoinedViewTest, OutlivesViewsAndOwners) {
  const auto joined = map({piece(0, 0, kPage), piece(1, 0, kPage)});
  ASSERT_TRUE(joined);
  owners_.clear();
  views_.clear();
  EXPECT_EQ(read(*joined), "a0b0");
}

TEST_F(JoinedViewTest, PiecesThatDoNotLieInTheirViewsOnWholePagesAreRefused) {
  EXPECT_FALSE(map({piece(0, 64, kPage), piece(1, 0, kPage)})) << "not on a page";
  EXPECT_FALSE(map({piece(0, 0, 100), piece(1, 0, kPage)})) << "a gap between them";
  EXPECT_FALSE(map({piece(0, 0, kPage), piece(1, kPage, 3 * kPage)})) << "after the end";
  EXPECT_FALSE(map({piece(0, 0, kPage), piece(1, 4 * kPage, 0)})) << "after the end";
  EXPECT_FALSE(map({piece(0, 0, kPage), piece(1, std::size_t{0} - kPage, kPage)}));
  EXPECT_FALSE(map({piece(0, 0, 0), piece(1, 0, 0)})) << "nothing";
  EXPECT_FALSE(map({})) << "nothing";
}

TEST(SharedOfferTest, HasTheBytesOfTheDocument) {
  const SharedOffer offer{.listener_name = 0x0102030405060708,
                          .token = 0x1112131415161718,
                          .size = 318144,
                          .slot = 318080,
                          .parked_flag = 318140};
  const std::vector<std::byte> bytes = encode(offer);
  std::vector<std::uint8_t> values;
  for (const std::byte byte : bytes) {
    values.push_back(std::to_integer<std::uint8_t>(byte));
  }
  const std::vector<std::uint8_t> golden = {
      0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,  // name of the peer listener
      0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,  // token
      0xC0, 0xDA, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,  // size
      0x80, 0xDA, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,  // slot
      0xBC, 0xDA, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,  // parked_flag
  };
  EXPECT_EQ(values, golden);
  SharedOffer read;
  EXPECT_FALSE(decode(bytes, read));
  EXPECT_EQ(read, offer);
  EXPECT_EQ(decode(std::span(bytes).first(bytes.size() - 1), read), WireError::kBadBody);
  EXPECT_EQ(read, offer) << "a rejected body changed the output";
}

// The other end finds in the offer what this end writes.
TEST(MailboxMemory, IsReadByAnOffer) {
  const auto memory = MailboxMemory::create({.arena = 100, .mailboxes = 2});
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->arena().size(), 100U);
  const SharedOffer offer = memory->shape().offer(1);
  std::error_code error;
  const auto view = SharedView::map(copy_of(memory->descriptor()), offer, kMost, error);
  ASSERT_NE(view, nullptr) << error.message();
  PeerMailbox peer(view->bytes(), offer);
  leave_header(memory->mailbox(0), {.request_id = 4});
  EXPECT_FALSE(peer.has_new()) << "another mailbox";
  leave_header(memory->mailbox(1), {.request_id = 5});
  FrameHeader header;
  ASSERT_TRUE(peer.has_new());
  ASSERT_FALSE(peer.take(header));
  EXPECT_EQ(header.request_id, 5U);
  EXPECT_FALSE(peer.is_parked());
  memory->set_parked(true);
  EXPECT_TRUE(peer.is_parked());
  EXPECT_FALSE(PeerMailbox(view->bytes(), memory->shape().offer(std::nullopt)).has_mailbox());
}

using Piece = BodyLocation;
constexpr std::size_t kPage = kPageBytes;

// The memory of one ps: two buffers of a page each, which begin with the two letters of `text`.
class FakePs {
 public:
  explicit FakePs(const char* text) {
    std::error_code error;
    memory_ = SharedMemory::create(2 * kPage, error);
    memory_->bytes()[0] = static_cast<std::byte>(text[0]);
    memory_->bytes()[kPage] = static_cast<std::byte>(text[1]);
    view_ = SharedView::map(Descriptor(dup(memory_->descriptor())), {.size = 2 * kPage}, 2 * kPage,
                            error);
  }
  [[nodiscard]] Piece buffer(std::size_t number) const {
    return {.view = view_, .offset = number * kPage, .size = kPage};
  }

 private:
  std::unique_ptr<SharedMemory> memory_;
  std::shared_ptr<const SharedView> view_;
};

// Returns the first byte of each page.
std::string letters_of(std::span<const std::byte> bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    text += static_cast<char>(bytes[at]);
  }
  return text;
}

TEST(JoinedBodiesTest, TwoWindowsServeStepsThatGoFromBufferToBuffer) {
  const FakePs first("ab");
  const FakePs second("xy");
  JoinedBodies windows;
  const std::vector<Piece> even{first.buffer(0), second.buffer(1)};
  const std::vector<Piece> odd{first.buffer(1), second.buffer(0)};
  const auto at_first = windows.over(even);
  const auto then = windows.over(odd);
  EXPECT_EQ(letters_of(at_first), "ay");
  EXPECT_EQ(letters_of(then), "bx");
  EXPECT_EQ(windows.over(even).data(), at_first.data()) << "mapped anew";
  EXPECT_EQ(windows.over(odd).data(), then.data()) << "mapped anew";
}

TEST(JoinedBodiesTest, ARestartedPsTakesThePlaceOfTheOlderWindow) {
  const FakePs first("ab");
  const FakePs second("xy");
  JoinedBodies windows;
  static_cast<void>(windows.over(std::vector{first.buffer(0), second.buffer(0)}));
  const auto newer = windows.over(std::vector{first.buffer(1), second.buffer(1)});
  const FakePs again("XY");
  EXPECT_EQ(letters_of(windows.over(std::vector{first.buffer(0), again.buffer(0)})), "aX");
  EXPECT_EQ(letters_of(newer), "by") << "a trainer may still read it";
  EXPECT_EQ(letters_of(windows.over(std::vector{first.buffer(1), again.buffer(1)})), "bY");
}

TEST(JoinedBodiesTest, ASinglePsIsReadWhereItsViewHasIt) {
  const FakePs only("ab");
  JoinedBodies windows;
  const Piece piece = only.buffer(1);
  EXPECT_EQ(windows.over(std::vector{piece}).data(), piece.view->bytes().data() + kPage);
}

TEST(JoinedBodiesTest, WhatDoesNotLieOnPagesIsNotJoined) {
  const FakePs first("ab");
  const FakePs second("xy");
  JoinedBodies windows;
  Piece crooked = first.buffer(0);
  crooked.offset = 64;
  EXPECT_TRUE(windows.over(std::vector{crooked}).empty());
  EXPECT_TRUE(windows.over(std::vector{crooked, second.buffer(0)}).empty());
}

}  // namespace
}  // namespace disttf::net
