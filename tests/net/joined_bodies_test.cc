#include "net/memory/joined_bodies.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "net/memory/shared_memory.h"

namespace disttf::net {
namespace {

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
