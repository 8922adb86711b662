#include "net/transport/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "net/wire/frame.h"

namespace disttf::net {
namespace {

constexpr std::size_t kSize = 10'000;
constexpr std::size_t kMost = std::size_t{1} << 20U;  // nothing here is larger
constexpr std::uint64_t kToken = 0x0123456789ABCDEF;

class SharedMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::error_code error;
    memory_ = SharedMemory::create(kSize, kToken, error);
    ASSERT_TRUE(memory_) << error.message();
  }
  static bool opens(const SharedOffer& offer) {
    std::error_code error;
    const bool opened = SharedView::open(offer, kMost, error) != nullptr;
    EXPECT_NE(opened, static_cast<bool>(error));
    return opened;
  }
  // An offer of what `fd` leads to in this process, as if it were ours.
  static SharedOffer offer_of(int fd) {
    return {.pid = static_cast<std::uint32_t>(getpid()),
            .fd = static_cast<std::uint32_t>(fd),
            .token = kToken,
            .size = kSize};
  }

  std::unique_ptr<SharedMemory> memory_;
};

TEST_F(SharedMemoryTest, IsZeroedAndBeginsOnAPage) {
  EXPECT_EQ(memory_->bytes().size(), kSize);
  EXPECT_TRUE(std::ranges::all_of(memory_->bytes(), [](std::byte b) { return b == std::byte{}; }));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory_->bytes().data()) % 4096, 0U);
}

TEST_F(SharedMemoryTest, ViewShowsWhatTheOwnerWritesLater) {
  std::error_code error;
  const auto view = SharedView::open(memory_->offer(), kMost, error);
  ASSERT_TRUE(view) << error.message();
  ASSERT_EQ(view->bytes().size(), kSize);
  memory_->bytes().back() = std::byte{7};
  EXPECT_EQ(view->bytes().back(), std::byte{7});
}

TEST_F(SharedMemoryTest, ViewOutlivesTheOwner) {
  memory_->bytes().front() = std::byte{7};
  std::error_code error;
  const auto view = SharedView::open(memory_->offer(), kMost, error);
  ASSERT_TRUE(view) << error.message();
  memory_.reset();
  EXPECT_EQ(view->bytes().front(), std::byte{7});
}

TEST_F(SharedMemoryTest, AnotherProcessSeesIt) {
  memory_->bytes().front() = std::byte{7};
  const SharedOffer offer = memory_->offer();
  const pid_t child = fork();
  if (child == 0) {
    std::error_code error;
    const auto view = SharedView::open(offer, kMost, error);
    _exit(view && view->bytes().front() == std::byte{7} ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(SharedMemoryTest, NothingElseIsTakenForIt) {
  SharedOffer offer = memory_->offer();
  EXPECT_TRUE(opens(offer));
  offer.token ^= 1U;
  EXPECT_FALSE(opens(offer)) << "the memory of another";
  offer = memory_->offer();
  offer.size += 1;
  EXPECT_FALSE(opens(offer));
  offer.size = 0;
  EXPECT_FALSE(opens(offer));
  offer.size = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(opens(offer));
  offer = memory_->offer();
  offer.fd = 1'000'000;
  EXPECT_FALSE(opens(offer));
  offer = memory_->offer();
  offer.pid = std::numeric_limits<std::uint32_t>::max();
  EXPECT_FALSE(opens(offer)) << "no such process";
}

// Else a peer could shorten it while it is read here, which ends a process by SIGBUS.
TEST_F(SharedMemoryTest, MemoryThatCanShrinkIsRefused) {
  const int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 4096 + kSize), 0);
  ASSERT_EQ(pwrite(fd, &kToken, sizeof kToken, 0), static_cast<ssize_t>(sizeof kToken));
  EXPECT_FALSE(opens(offer_of(fd)));
  ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(opens(offer_of(fd))) << "and it was for nothing else";
  close(fd);
}

// A peer may offer memory that costs it nothing: pages that are only taken when somebody looks.
TEST_F(SharedMemoryTest, MoreThanTheReaderNeedsIsRefusedBeforeItIsMapped) {
  const int fd = memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, static_cast<off_t>(4096 + kMost + 1)), 0);
  ASSERT_EQ(pwrite(fd, &kToken, sizeof kToken, 0), static_cast<ssize_t>(sizeof kToken));
  ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  SharedOffer offer = offer_of(fd);
  offer.size = kMost + 1;
  std::error_code error;
  EXPECT_FALSE(SharedView::open(offer, kMost, error));
  EXPECT_TRUE(error);
  struct stat status {};
  ASSERT_EQ(fstat(fd, &status), 0);
  EXPECT_LE(status.st_blocks * 512, 4096) << "more than the token's page was taken";
  EXPECT_TRUE(SharedView::open(offer, kMost + 1, error)) << "and it was for nothing else";
  close(fd);
}

TEST_F(SharedMemoryTest, FilesAndPipesAreRefused) {
  const std::string path = testing::TempDir() + "disttf_shared_memory_test";
  const int file = open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  unlink(path.c_str());
  ASSERT_EQ(ftruncate(file, 4096 + kSize), 0);
  ASSERT_EQ(pwrite(file, &kToken, sizeof kToken, 0), static_cast<ssize_t>(sizeof kToken));
  EXPECT_FALSE(opens(offer_of(file)));
  close(file);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  EXPECT_FALSE(opens(offer_of(ends[0]))) << "and it does not hang";
  close(ends[0]);
  close(ends[1]);
}

// Two owners, each of three pages that begin with its letter and the page's number.
class JoinedViewTest : public testing::Test {
 protected:
  using Piece = JoinedView::Piece;
  static constexpr std::size_t kPage = kPageBytes;

  void SetUp() override {
    for (const char letter : {'a', 'b'}) {
      std::error_code error;
      owners_.push_back(SharedMemory::create(3 * kPage, kToken, error));
      ASSERT_TRUE(owners_.back()) << error.message();
      for (std::size_t page = 0; page < 3; ++page) {
        auto* at = reinterpret_cast<char*>(owners_.back()->bytes().data()) + page * kPage;
        at[0] = letter;
        at[1] = static_cast<char>('0' + page);
      }
      views_.push_back(SharedView::open(owners_.back()->offer(), kMost, error));
      ASSERT_TRUE(views_.back()) << error.message();
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
  // The beginning of each page.
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
  EXPECT_FALSE(map({piece(0, 0, kPage), piece(1, kPage, 3 * kPage)})) << "behind the end";
  EXPECT_FALSE(map({piece(0, 0, kPage), piece(1, 4 * kPage, 0)})) << "behind the end";
  EXPECT_FALSE(map({piece(0, 0, kPage), piece(1, std::size_t{0} - kPage, kPage)}));
  EXPECT_FALSE(map({piece(0, 0, 0), piece(1, 0, 0)})) << "nothing";
  EXPECT_FALSE(map({})) << "nothing";
}

TEST(SharedOfferTest, HasTheBytesOfTheDocument) {
  const SharedOffer offer{
      .pid = 0x01020304, .fd = 9, .token = 0x1112131415161718, .size = 318144, .signal = 318080};
  const std::vector<std::byte> bytes = encode(offer);
  std::vector<std::uint8_t> values;
  for (const std::byte byte : bytes) {
    values.push_back(std::to_integer<std::uint8_t>(byte));
  }
  const std::vector<std::uint8_t> golden = {
      0x04, 0x03, 0x02, 0x01,                          // pid
      0x09, 0x00, 0x00, 0x00,                          // fd
      0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,  // token
      0xC0, 0xDA, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,  // size
      0x80, 0xDA, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,  // signal
  };
  EXPECT_EQ(values, golden);
  SharedOffer read;
  EXPECT_FALSE(decode(bytes, read));
  EXPECT_EQ(read, offer);
  EXPECT_EQ(decode(std::span(bytes).first(bytes.size() - 1), read), WireError::kBadBody);
  EXPECT_EQ(read, offer) << "a rejected body changed the output";
}

}  // namespace
}  // namespace disttf::net
