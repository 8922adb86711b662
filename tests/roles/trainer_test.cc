// The part of the trainer that needs no cluster: the hash of its weights.
#include "roles/trainer/shell/trainer.h"

#include <gtest/gtest.h>

#include <string>

#include "math/aligned.h"
#include "model/trained_model.h"

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

}  // namespace
}  // namespace disttf::roles
