#include "roles/trainer/shell/gradient_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>

namespace disttf::roles {
namespace {

constexpr std::size_t kGradientSize = 100;  // floats

class GradientBuffersTest : public testing::Test {
 protected:
  // Memory for two gradients.
  void prepare(std::size_t per_step) {
    auto memory = net::GradientMemory::create({.bytes = kGradientSize * sizeof(float), .count = 2});
    ASSERT_TRUE(memory);
    places_.prepare(std::move(memory), kGradientSize, per_step);
  }
  // Computes a gradient whose values all equal `value`.
  std::span<float> compute(float value) {
    const std::span<float> gradient = places_.begin();
    EXPECT_EQ(gradient.size(), kGradientSize);
    EXPECT_EQ(gradient.data(), places_.current().data());
    std::ranges::fill(gradient, value);
    places_.pushed();
    return gradient;
  }
  [[nodiscard]] bool is_shared(std::span<const float> gradient) const {
    return places_.memory()->holds(std::as_bytes(gradient));
  }

  GradientBuffers places_;
};

TEST_F(GradientBuffersTest, ThoseOfAStepAreSharedAsFarAsThereIsRoomAndLeftAlone) {
  prepare(4);
  const std::span<float> first = compute(1);
  const std::span<float> second = compute(2);
  EXPECT_TRUE(is_shared(first));
  EXPECT_TRUE(is_shared(second));
  EXPECT_FALSE(is_shared(compute(3)));
  EXPECT_FALSE(is_shared(compute(4)));
  EXPECT_EQ(first.front(), 1);
  EXPECT_EQ(first.back(), 1);
  EXPECT_EQ(second.front(), 2);
  places_.begin_step();
  EXPECT_EQ(places_.begin().data(), first.data());
}

// InPlaceTest checks that a ps that has mapped the old memory keeps it.
TEST_F(GradientBuffersTest, OthersLieInOtherMemoryOnceItIsLeft) {
  prepare(2);
  compute(1);
  const std::span<float> second = places_.begin();
  std::ranges::fill(second, 2.0F);
  places_.leave_memory();
  EXPECT_FALSE(is_shared(second));
  const std::span<float> other = places_.begin();
  EXPECT_TRUE(is_shared(other));
  EXPECT_EQ(other.front(), 0);
}

TEST_F(GradientBuffersTest, WithoutMemoryAllLieInOnePlace) {
  places_.prepare(nullptr, kGradientSize, 3);
  const std::span<float> first = compute(1);
  EXPECT_EQ(compute(2).data(), first.data());
  EXPECT_EQ(places_.memory(), nullptr);
}

}  // namespace
}  // namespace disttf::roles
