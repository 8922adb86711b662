// The part of the trainer that needs no cluster: the hash of its weights.
#include "roles/trainer/shell/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "math/aligned.h"
#include "model/trained_model.h"
#include "roles/trainer/shell/gradient_buffers.h"

namespace disttf::roles {
namespace {

class WeightsHash : public testing::Test {
 protected:
  WeightsHash() {
    layout_.add("w", {3, 7});  // 21 floats, then padding up to the next 64 bytes
    layout_.add("b", {7});
    parameters_ = math::AlignedVector(layout_.size());
    for (const math::Variable& variable : layout_.variables()) {
      for (std::size_t i = 0; i < variable.size; ++i) {
        parameters_.data()[variable.offset + i] = static_cast<float>(variable.offset + i);
      }
    }
  }
  [[nodiscard]] std::string hash() const { return weights_hash(layout_, parameters_.span()); }
  [[nodiscard]] bool is_padding(std::size_t at) const {
    for (const math::Variable& variable : layout_.variables()) {
      if (at >= variable.offset && at < variable.offset + variable.size) {
        return false;
      }
    }
    return true;
  }
  math::ParameterLayout layout_;
  math::AlignedVector parameters_;
};

TEST_F(WeightsHash, IgnoresPadding) {
  const std::string before = hash();
  for (std::size_t at = 0; at < parameters_.size(); ++at) {
    if (is_padding(at)) {
      parameters_.data()[at] = 42;
    }
  }
  EXPECT_EQ(hash(), before);
}

TEST_F(WeightsHash, TellsEveryWeightApart) {
  const std::string before = hash();
  for (std::size_t at = 0; at < parameters_.size(); ++at) {
    if (!is_padding(at)) {
      const float kept = parameters_.data()[at];
      parameters_.data()[at] = kept + 0.5F;
      EXPECT_NE(hash(), before) << at;
      parameters_.data()[at] = kept;
    }
  }
}

// sha256 of the little-endian float32 values 1.0 and -2.0, bytes 0000803f and 000000c0: by
// `printf '\x00\x00\x80\x3f\x00\x00\x00\xc0' | sha256sum`.
TEST(WeightsHashOfKnownValues, IsSha256OfLittleEndianFloats) {
  math::ParameterLayout layout;
  layout.add("w", {1});
  layout.add("b", {1});
  math::AlignedVector parameters(layout.size());
  parameters.data()[layout.variables()[0].offset] = 1.0F;
  parameters.data()[layout.variables()[1].offset] = -2.0F;
  EXPECT_EQ(weights_hash(layout, parameters.span()),
            "ee4ac73c2bd27756ab82780f27c73a7bc4d3f0bb6acb37e008bc27eccd7e588b");
}

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
